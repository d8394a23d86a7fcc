package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// storages are both kinds, empty.
func storages(t *testing.T) map[string]func(t *testing.T) Storage {
	return map[string]func(t *testing.T) Storage{
		"folder": func(t *testing.T) Storage {
			f, err := OpenFolder(filepath.Join(t.TempDir(), "store"))
			realtest.Must(t, err)
			return f
		},
		"S3": func(t *testing.T) Storage {
			bucket := realtest.S3(t)
			s, err := Open("s3://"+bucket+"/some/prefix", t.TempDir())
			realtest.Must(t, err)
			return s
		},
	}
}

func put(t testing.TB, s Storage, key, text, replace string) error {
	t.Helper()
	temp, err := s.Temp()
	realtest.Must(t, err)
	defer temp.Close()
	_, err = temp.WriteString(text)
	realtest.Must(t, err)
	sum, err := Sum(strings.NewReader(text))
	realtest.Must(t, err)
	return s.Put(context.Background(), key, temp, Meta{SHA256: sum, Name: "its.name"}, replace)
}

func TestAnObjectIsWrittenOnceAndReplacedOnlyByWhoKnowsIt(t *testing.T) {
	for name, open := range storages(t) {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), t.Context()
			_, err := s.Stat(ctx, "ab/cd.debuginfo")
			if !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("nothing there: %v", err)
			}
			realtest.Must(t, put(t, s, "ab/cd.debuginfo", "first", ""))
			if err := put(t, s, "ab/cd.debuginfo", "second", ""); !errors.Is(err, ErrConflict) {
				t.Fatalf("a second object: %v", err)
			}
			info, err := s.Stat(ctx, "ab/cd.debuginfo")
			realtest.Must(t, err)
			if info.Size != 5 || info.Name != "its.name" || len(info.SHA256) != 64 || info.Tag == "" || time.Since(info.Modified) > time.Hour {
				t.Errorf("%+v", info)
			}
			realtest.Must(t, put(t, s, "ab/cd.debuginfo", "third", info.Tag))
			if err := put(t, s, "ab/cd.debuginfo", "fourth", info.Tag); !errors.Is(err, ErrConflict) {
				t.Fatalf("replaced by who doesn't know it: %v", err)
			}
			if err := put(t, s, "ab/none", "x", info.Tag); !errors.Is(err, ErrConflict) && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("replaced what isn't there: %v", err)
			}
			o, err := s.Open(ctx, "ab/cd.debuginfo")
			realtest.Must(t, err)
			realtest.Must(t, s.Remove(ctx, "ab/other")) // that isn't there
			text, err := io.ReadAll(o)
			if err != nil || string(text) != "third" {
				t.Errorf("%q, %v", text, err)
			}
			realtest.Must(t, o.Close())
			realtest.Must(t, s.Remove(ctx, "ab/cd.debuginfo"))
			if _, err := s.Open(ctx, "ab/cd.debuginfo"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removed: %v", err)
			}
		})
	}
}

func TestOfManyWritersOneWins(t *testing.T) {
	for name, open := range storages(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var won atomic.Int32
			var wg sync.WaitGroup
			for k := range 16 {
				wg.Go(func() {
					switch err := put(t, s, "ab/race", fmt.Sprint("writer ", k), ""); {
					case err == nil:
						won.Add(1)
					case !errors.Is(err, ErrConflict):
						t.Errorf("writer %d: %v", k, err)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("%d writers have won", won.Load())
			}
			info, err := s.Stat(t.Context(), "ab/race")
			realtest.Must(t, err)
			won.Store(0)
			for k := range 16 {
				wg.Go(func() {
					if put(t, s, "ab/race", fmt.Sprint("replaced by ", k), info.Tag) == nil {
						won.Add(1)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("%d have replaced it", won.Load())
			}
		})
	}
}

func TestAnyPartOfAnObjectCanBeRead(t *testing.T) {
	for name, open := range storages(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			text := strings.Repeat("0123456789", 100_000)
			realtest.Must(t, put(t, s, "ab/long", text, ""))
			o, err := s.Open(t.Context(), "ab/long")
			realtest.Must(t, err)
			defer o.Close()
			b := make([]byte, 7)
			if n, err := o.ReadAt(b, 123_455); n != 7 || err != nil || string(b) != "5678901" {
				t.Errorf("%q, %v", b[:n], err)
			}
			if n, err := o.ReadAt(b, int64(len(text)-3)); n != 3 || err != io.EOF || string(b[:n]) != "789" {
				t.Errorf("at the end: %q, %v", b[:n], err)
			}
			if end, err := o.Seek(0, io.SeekEnd); end != int64(len(text)) || err != nil {
				t.Errorf("%d, %v", end, err)
			}
			for _, at := range []int64{0, 999_990, 500_001} {
				_, err := o.Seek(at, io.SeekStart)
				realtest.Must(t, err)
				if n, err := io.ReadFull(o, b); err != nil || string(b[:n]) != text[at:at+7] {
					t.Errorf("from %d: %q, %v", at, b[:n], err)
				}
			}
		})
	}
}

func TestListGivesWhatIsThere(t *testing.T) {
	for name, open := range storages(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			want := map[string]bool{}
			for k := range 30 {
				key := fmt.Sprintf("%02x/object-%d", k%4, k)
				realtest.Must(t, put(t, s, key, strings.Repeat("x", k), ""))
				if k%4 == 3 {
					want[key] = true
				}
			}
			got := map[string]bool{}
			realtest.Must(t, s.List(t.Context(), "03/", func(o Info) error {
				got[o.Key] = true
				if !strings.HasSuffix(o.Key, fmt.Sprint("-", o.Size)) || o.Tag == "" {
					t.Errorf("%+v", o)
				}
				return nil
			}))
			if len(got) != len(want) {
				t.Errorf("%v, want %v", got, want)
			}
			stop := errors.New("enough")
			if err := s.List(t.Context(), "", func(Info) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNoKeyLeadsOutOfAFolder(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenFolder(filepath.Join(dir, "store"))
	realtest.Must(t, err)
	secret := filepath.Join(dir, "secret")
	realtest.Must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	realtest.Must(t, os.Symlink(secret, filepath.Join(dir, "store", "link")))
	realtest.Must(t, os.Symlink(dir, filepath.Join(dir, "store", "up")))
	for _, key := range []string{"../secret", "/etc/passwd", "a/../../secret", "", ".", "..", ".lock", "a/.hidden", "a//b", "a\x00b", "link", "up/secret", `a\b`,
		strings.Repeat("a/", 400) + "b"} {
		if o, err := s.Open(t.Context(), key); err == nil {
			t.Errorf("%q was opened: %+v", key, o.Info())
		}
		if err := put(t, s, key, "mine", ""); err == nil {
			t.Errorf("%q was written", key)
		}
		_ = s.Remove(t.Context(), key)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhatIsNotPutLeavesNothing(t *testing.T) {
	s, err := OpenFolder(filepath.Join(t.TempDir(), "store"))
	realtest.Must(t, err)
	temp, err := s.Temp()
	realtest.Must(t, err)
	_, err = temp.Write(bytes.Repeat([]byte("x"), 1<<20))
	realtest.Must(t, err)
	back, err := os.ReadFile(temp.Path())
	if err != nil || len(back) != 1<<20 {
		t.Errorf("%d bytes, %v", len(back), err)
	}
	realtest.Must(t, temp.Close())
	// A named one, as another system's process may have left it when it was killed.
	left := filepath.Join(s.String(), ".ABC"+tempSuffix)
	realtest.Must(t, os.WriteFile(left, []byte("half"), 0o600))
	realtest.Must(t, s.List(t.Context(), "", func(o Info) error { t.Errorf("%+v is there", o); return nil }))
	if n, err := s.Sweep(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := s.Sweep(t.Context(), 0); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	entries, err := os.ReadDir(s.String())
	if err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
