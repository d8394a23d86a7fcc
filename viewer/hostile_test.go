package viewer

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// indexedReel is a reel of some chunks in two threads, with or without its index.
func indexedReel(t testing.TB, calls int, index bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "indexed.reel")
	w := newReel(t, path, []string{"outer", "work", "rest"})
	for name, step := range map[string]uint64{"main": 10, "other": 14} {
		events := []reel.Event{reel.Entry(1500, 0x20000, 1)}
		for at := uint64(2000); at < 2000+step*uint64(calls); at += step {
			events = append(events, reel.Entry(at, 0x10000, 2), reel.Exit(at+4, 0x10000, 2))
		}
		thread(t, w, name, append(events, reel.Exit(3000+step*uint64(calls), 0x20000, 1))...)
	}
	if index {
		realtest.Must(t, timeline.Append(context.Background(), w, path, timeline.Options{}))
	}
	realtest.Must(t, w.Close())
	return path
}

// everything asks a reel for one of each.
func everything(i int) []string {
	var list []string
	for _, request := range []string{
		"info?", "lanes?", "names?ids=1,2,3,4,4294967295", "overview?width=300", "view?from=0&to=9007199254740992&width=1800&lanes=0:0:40", "view?from=100&to=5000&width=1000&lanes=0:0:3&quick=1",
		"functions?", "functions?from=100&to=6000", "tree?", "tree?depth=1", "distribution?f=2", "calls?f=2&limit=3", "calls?f=4294967295", "call?lane=0&row=1&at=3000",
		"call?lane=99&row=1&at=3000", "first?f=2", "next?f=2&lane=0&row=1&at=3000&dir=-1", "find?q=*", "speedscope?from=0&to=4000", "diff?limit=3", "dump?",
		"marks?", "titles?ids=0,1,2,4294967295", "view?from=0&to=9007199254740992&width=1800&spans=0:0:40,1:0:4294967295,2147483648:0:40,2147483649:3:1,4294967295:0:1", "view?from=7&to=8&width=16384&spans=2147483648:0:2&lanes=0:0:1",
		"mark?kind=span&lane=0&row=0&at=3000&near=9007199254740992", "mark?kind=instant&lane=0&at=9007199254740992&near=9007199254740992", "mark?kind=value&lane=2147483648&at=9007199254740992", "mark?kind=span&lane=2147483649&row=24&at=0",
		"nextmark?q=*&kind=after&at=9007199254740992&dir=-1", "nextmark?q=&kind=value&lane=2147483648&at=5", "findmarks?q=*", "marktable?", "marktable?from=5&to=5", "offs?f=2", "offs?f=4294967295&from=5&to=6", "offs?whole=1&limit=2000&from=5&to=5", "offview?", "offview?width=1&q=*&from=5&to=9007199254740992", "offview?width=4096&f=4294967295&from=6&to=6", "flows?", "flows?lane=4294967295",
	} {
		list = append(list, fmt.Sprintf("%s&reel=%d", request, i))
	}
	return list
}

// answersAll fails the test where a request isn't answered: a server that has panicked closes the connection. Which answers
// there are is for the reel to say.
func (c *client) answersAll(reels ...int) (good int) {
	c.t.Helper()
	for _, i := range reels {
		for _, request := range everything(i) {
			a, body := c.do("/"+c.token+"/api/"+request, nil)
			switch {
			case a.StatusCode == http.StatusOK:
				good++
			case (a.StatusCode == http.StatusBadRequest || a.StatusCode == http.StatusInternalServerError) && json.Valid(body):
			default:
				c.t.Errorf("%s: %s: %.200s", request, a.Status, body)
			}
		}
	}
	return good
}

func TestReelsThatAreDamagedAtRandomAreAnswered(t *testing.T) {
	whole, err := os.ReadFile(indexedReel(t, 3000, true))
	realtest.Must(t, err)
	const seed = 20
	rng := rand.New(rand.NewPCG(seed, 1))
	sound := oneCall(t)
	for i := range 40 {
		data := append([]byte(nil), whole...)
		switch i % 4 {
		case 0:
			data = data[:rng.IntN(len(data))]
		case 1:
			copy(data[rng.IntN(len(data)):], data[rng.IntN(len(data)):])
		}
		for range rng.IntN(20) {
			if len(data) > 0 {
				data[rng.IntN(len(data))] = byte(rng.Uint32())
			}
		}
		path := filepath.Join(t.TempDir(), "damaged.reel")
		realtest.Must(t, os.WriteFile(path, data, 0o600))
		s, err := New(Options{Paths: []string{path}})
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error doesn't name the file: %v", err)
			}
			continue
		}
		realtest.Must(t, s.Close())
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			serveReels(t, path, sound).answersAll(0)
			serveReels(t, sound, path).answersAll(1)
		})
	}
}

func TestSecondFileThatIsNoReelIsNamed(t *testing.T) {
	dir := t.TempDir()
	good := oneCall(t)
	fifo, empty, text, folder := filepath.Join(dir, "fifo"), filepath.Join(dir, "empty"), filepath.Join(dir, "te\x1b[31mxt"), filepath.Join(dir, "folder")
	realtest.Must(t, syscall.Mkfifo(fifo, 0o600))
	realtest.Must(t, os.WriteFile(empty, nil, 0o600))
	realtest.Must(t, os.WriteFile(text, []byte("once upon a time"), 0o600))
	realtest.Must(t, os.Mkdir(folder, 0o700))
	for _, bad := range []string{fifo, empty, text, folder, filepath.Join(dir, "missing"), "/dev/zero"} {
		for _, paths := range [][]string{{good, bad}, {bad, good}} {
			said := make(chan error, 1)
			go func() {
				s, err := New(Options{Paths: paths})
				if err == nil {
					_ = s.Close() // it is an error that there is one
				}
				said <- err
			}()
			select {
			case err := <-said:
				if err == nil || !strings.Contains(err.Error(), bad) {
					t.Errorf("%q: %v", paths, err)
				}
			case <-time.After(patience):
				t.Fatalf("%q: it waits for somebody to write there", paths)
			}
		}
	}
}

// A reel that is cut short by somebody after it was opened, before or after it was indexed, ends nothing, and no page waits for it.
func TestSecondReelThatIsCutShortLeavesTheFirst(t *testing.T) {
	for _, index := range []bool{false, true} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("index %v, early %v", index, early), func(t *testing.T) {
				path := indexedReel(t, 300_000, index)
				s, err := New(Options{Paths: []string{oneCall(t)}})
				realtest.Must(t, err)
				second, err := openRecording(s, 1, path, false)
				realtest.Must(t, err)
				s.reels = append(s.reels, second)
				if early {
					realtest.Must(t, os.Truncate(path, 1))
				}
				second.start()
				c := served(t, s)
				info := until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 })
				if !early {
					if info.Reels[1].Calls != 600_002 {
						t.Errorf("%+v", info.Reels[1])
					}
					realtest.Must(t, os.Truncate(path, 1))
				}
				c.answersAll(1)
				if good := c.answersAll(0); good < 15 {
					t.Errorf("only %d requests of the first reel are answered", good)
				}
			})
		}
	}
}
