package symbols

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

const claimed = "0123456789abcdef0123456789abcdef01234567"

// claiming builds a program that says that it has the claimed ID.
func claiming(t *testing.T, flags ...string) string {
	t.Helper()
	return compile(t, realtest.GCC, "calls.c", append([]string{"-O2", "-g", "-Wl,--build-id=0x" + claimed}, flags...)...)
}

// renamed copies a program and calls its function walk evil; nothing lies elsewhere.
func renamed(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data = bytes.ReplaceAll(data, []byte("\x00walk\x00"), []byte("\x00evil\x00")); !bytes.Contains(data, []byte("\x00evil\x00")) {
		t.Fatal("the program has no walk")
	}
	data = bytes.ReplaceAll(data, []byte("\x00walk\x00"), []byte("\x00evil\x00"))
	at := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(at, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return at
}

// built is the map of a program.
func built(t *testing.T, path string) []byte {
	t.Helper()
	var data bytes.Buffer
	if _, err := mapOf(t, path, BuildOptions{}).WriteTo(&data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// calls finds an image's map and says whether it has a function of that name.
func calls(t *testing.T, f *Finder, w Wanted, name string) bool {
	t.Helper()
	m, err := f.Find(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return has(m, name)
}

func has(m *Map, name string) bool {
	found := false
	m.Functions(func(_, _ uint64, got string) bool {
		found = found || got == name
		return !found
	})
	return found
}

func TestImageThatClaimsAnIDNamesNoOther(t *testing.T) {
	honest := claiming(t)
	for what, evil := range map[string]string{
		"code elsewhere":    claiming(t, "-Dwalk=evil", "-O1"),
		"code at its place": renamed(t, honest),
	} {
		finder := &Finder{Store: newStore(t)}
		for range 2 { // made, and from the store
			if !calls(t, finder, Wanted{ID: claimed, Path: evil}, "evil") {
				t.Errorf("%s: it is not named by its own map", what)
			}
		}
		if m, err := finder.Find(t.Context(), Wanted{ID: claimed}); !errors.Is(err, ErrNoSymbols) {
			t.Errorf("%s: it serves its ID: %v, evil %t", what, err, has(m, "evil"))
		}
		for range 2 {
			if calls(t, finder, Wanted{ID: claimed, Path: honest}, "evil") || !calls(t, finder, Wanted{Path: honest}, "walk") {
				t.Errorf("%s: it named another image's functions", what)
			}
			if !calls(t, finder, Wanted{ID: claimed, Path: evil}, "evil") {
				t.Errorf("%s: it is named by another image's map", what)
			}
		}
	}
}

// Once the file is gone its map still serves those who ask for that path and ID.
func TestMapOfAFileThatIsGoneServesItsPathOnly(t *testing.T) {
	path := claiming(t)
	finder := &Finder{Store: newStore(t)}
	w := Wanted{ID: claimed, Path: path}
	if !calls(t, finder, w, "walk") {
		t.Error("no walk")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !calls(t, finder, w, "walk") {
		t.Error("no walk of the file that is gone")
	}
	if err := os.Rename(claiming(t, "-Wl,--build-id=0xabcdef01"), path); err != nil {
		t.Fatal(err)
	}
	if !calls(t, finder, w, "walk") {
		t.Error("no walk of the file in whose place there is another")
	}
	for _, w := range []Wanted{{ID: claimed}, {ID: claimed, Path: path + "x"}} {
		if _, err := finder.Find(t.Context(), w); !errors.Is(err, ErrNoSymbols) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// What the user puts for an ID serves images whose code is where the map says, stripped or
// not, and no others.
func TestMapThatWasPutForAnIDServesImagesOfItsLayout(t *testing.T) {
	path := claiming(t)
	store := newStore(t)
	data := built(t, path)
	if err := store.Put(claimed, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
		t.Fatal(err)
	}
	stripped := filepath.Join(t.TempDir(), "program")
	run(t, filepath.Dir(path), nil, realtest.Tool(t, realtest.Objcopy), "--strip-all", path, stripped)
	finder := &Finder{Store: store}
	for _, w := range []Wanted{{ID: claimed}, {ID: claimed, Path: stripped}, {Path: stripped}, {ID: claimed, Path: "/none"}} {
		if !calls(t, finder, w, "walk") {
			t.Errorf("%+v: no walk", w)
		}
	}
	if !calls(t, finder, Wanted{Path: claiming(t, "-Dwalk=other", "-O1")}, "other") {
		t.Error("an image whose code lies elsewhere has its names")
	}
}

func TestDebugFileOfAnotherLayoutIsRefused(t *testing.T) {
	objcopy := realtest.Tool(t, realtest.Objcopy)
	other := claiming(t, "-Dwalk=evil", "-O1")
	dirs := t.TempDir()
	place := filepath.Join(dirs, ".build-id", claimed[:2], claimed[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, dirs, nil, objcopy, "--only-keep-debug", other, place)
	path := claiming(t)
	run(t, dirs, nil, objcopy, "--strip-all", path)
	fetcher := &folder{dir: t.TempDir()}
	fetcher.add(t, claimed, FetchDebugInfo, place)
	for _, f := range []*Finder{{DebugDirs: []string{dirs}}, {Fetcher: fetcher}} {
		var layout *object.LayoutError
		if _, err := f.Find(t.Context(), Wanted{Path: path}); !errors.As(err, &layout) || !strings.Contains(err.Error(), ".text") {
			t.Errorf("got %v", err)
		}
		if !calls(t, f, Wanted{ID: claimed}, "evil") {
			t.Error("by the ID alone nothing was found")
		}
	}
}

func TestFilesOfAnotherUserAreNotStored(t *testing.T) {
	realtest.Need(t, realtest.Superuser)
	const other = 12345
	give := func(path string) {
		t.Helper()
		if err := os.Chown(path, other, other); err != nil {
			t.Fatal(err)
		}
	}
	objcopy := realtest.Tool(t, realtest.Objcopy)
	theirs := claiming(t)
	give(theirs)
	writable := claiming(t)
	if err := os.Chmod(writable, 0o777); err != nil {
		t.Fatal(err)
	}
	// A program of root's with a debug file that somebody else has put beside it.
	debugged := claiming(t)
	debug := filepath.Join(filepath.Dir(debugged), "program.debug")
	run(t, filepath.Dir(debugged), nil, objcopy, "--only-keep-debug", debugged, debug)
	run(t, filepath.Dir(debugged), nil, objcopy, "--strip-all", "--add-gnu-debuglink=program.debug", debugged)
	give(debug)
	for what, path := range map[string]string{"another's": theirs, "writable": writable, "with another's debug file": debugged} {
		finder := &Finder{Store: newStore(t)}
		if !calls(t, finder, Wanted{Path: path}, "walk") {
			t.Errorf("%s: no walk", what)
		}
		got := slices.DeleteFunc(files(t, finder.Store.Dir()), func(path string) bool { return filepath.Ext(path) != Extension })
		if len(got) > 0 {
			t.Errorf("%s: stored as %q", what, got)
		}
		if _, err := finder.Find(t.Context(), Wanted{ID: claimed}); !errors.Is(err, ErrNoSymbols) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A store as it was before maps said whose code they describe.
func TestStoreOfAnEarlierFormIsPassedOver(t *testing.T) {
	path := claiming(t)
	evil := built(t, renamed(t, path))
	le := binary.LittleEndian
	le.PutUint32(evil[24:], le.Uint32(evil[24:])&^flagLayout)
	le.PutUint64(evil[72:], 0)
	le.PutUint32(evil[checksumOffset:], headerChecksum(evil))
	if _, err := Parse("old", evil); err != nil {
		t.Fatalf("an old map by itself: %v", err)
	}
	store := newStore(t)
	at, err := store.Path(claimed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, at, string(evil))
	finder := &Finder{Store: store}
	if !calls(t, finder, Wanted{Path: path}, "walk") || store.Has(claimed) {
		t.Error("the old map is used")
	}
	if _, err := finder.Find(t.Context(), Wanted{ID: claimed}); !errors.Is(err, ErrNoSymbols) || !strings.Contains(err.Error(), "build it again") {
		t.Errorf("got %v", err)
	}
}

func TestLinksInAStoreLeadNowhere(t *testing.T) {
	store := newStore(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(store.Dir(), "01")); err != nil {
		t.Fatal(err)
	}
	if err := put(t, store, sample(t)); err == nil {
		t.Error("a map was stored behind a link")
	}
	if got, err := os.ReadDir(outside); err != nil || len(got) > 0 {
		t.Errorf("the link's target has %q, %v", got, err)
	}
	// A link in a map's place is replaced, and what it leads to stays.
	target := filepath.Join(outside, "target")
	write(t, target, "precious")
	if err := errors.Join(os.Remove(filepath.Join(store.Dir(), "01")), os.Mkdir(filepath.Join(store.Dir(), "01"), 0o755),
		os.Symlink(target, filepath.Join(store.Dir(), "01", "23.symmap"))); err != nil {
		t.Fatal(err)
	}
	if err := put(t, store, sample(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "precious" || !store.Has("0123") {
		t.Errorf("the link's target has %.20q, %v", got, err)
	}
}

// A mapped file that its owner truncates ends the process that reads it (SIGBUS).
func TestMapOfAnotherUserMayBeTruncated(t *testing.T) {
	realtest.Need(t, realtest.Superuser)
	path := filepath.Join(t.TempDir(), "theirs.symmap")
	write(t, path, string(sample(t)))
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if exercise(t, m) == 0 {
		t.Error("the map answers nothing")
	}
	if err := os.Truncate(path, maxForeign+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrNotMap) {
		t.Errorf("%d bytes: %v", maxForeign+1, err)
	}
}

func TestStoreInAFolderOfAnotherIsNotTheUsersOwn(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOwnStore(filepath.Join(top, "store")); err == nil {
		t.Error("a store where everybody can put one was opened")
	}
	if _, err := os.Stat(filepath.Join(top, "store")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
	if _, err := OpenOwnStore(filepath.Join(t.TempDir(), "store")); err != nil {
		t.Error(err)
	}
}

// The content of a file is read once, and again when the file has changed.
func TestContentIsReadAgainWhenTheFileChanged(t *testing.T) {
	store := newStore(t)
	path := claiming(t)
	noted := func() int {
		t.Helper()
		got, err := os.ReadDir(filepath.Join(store.Dir(), seenFolder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return len(got)
	}
	first := store.contentOf(image(t, path))
	if first == "" || noted() != 0 {
		t.Fatalf("key %q of a file that was just made, %d noted", first, noted())
	}
	time.Sleep(settled + 100*time.Millisecond)
	if store.contentOf(image(t, path)) != first || noted() != 1 {
		t.Errorf("%d noted", noted())
	}
	// What is noted is believed: that is what spares reading.
	entries, err := os.ReadDir(filepath.Join(store.Dir(), seenFolder))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("ab", 16)
	write(t, filepath.Join(store.Dir(), seenFolder, entries[0].Name()), other)
	if got := store.contentOf(image(t, path)); string(got) != other {
		t.Errorf("key %q, want the noted one", got)
	}
	write(t, filepath.Join(store.Dir(), seenFolder, entries[0].Name()), "damaged")
	if store.contentOf(image(t, path)) != first {
		t.Error("a damaged note was believed")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	write(t, path, string(data))
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if store.contentOf(image(t, path)) == first {
		t.Error("a file that was changed, and given its old times, has its old key")
	}
}

func BenchmarkContentOfALargeFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "large")
	program, err := os.ReadFile(compile(b, realtest.GCC, "calls.c", "-Wl,--build-id"))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, append(program, make([]byte, 600<<20)...), 0o644); err != nil {
		b.Fatal(err)
	}
	time.Sleep(settled + 100*time.Millisecond)
	im := image(b, path)
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			keyOf(im)
		}
	})
	b.Run("seen", func(b *testing.B) {
		store := newStore(b)
		for b.Loop() {
			store.contentOf(im)
		}
	})
}
