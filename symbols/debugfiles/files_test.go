package debugfiles_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/debugfiles"
	"github.com/callreel/callreel/symbols/debuginfod"
)

// parts are a program, whole and without symbols, without debug information only, and its debug file.
type parts struct{ whole, stripped, symbolsOnly, debug, id string }

func split(t *testing.T) parts {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.Objcopy)
	dir := t.TempDir()
	p := parts{realtest.Build(t, "arguments", "-g", "-Wl,--build-id"), filepath.Join(dir, "stripped"), filepath.Join(dir, "symbols"), filepath.Join(dir, "debug"), ""}
	objcopy := realtest.Tool(t, realtest.Objcopy)
	realtest.Must(t, exec.Command(objcopy, "--strip-all", p.whole, p.stripped).Run())
	realtest.Must(t, exec.Command(objcopy, "--strip-debug", p.whole, p.symbolsOnly).Run())
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", p.whole, p.debug).Run())
	p.id = open(t, p.whole).ID()
	return p
}

func open(t *testing.T, path string) *object.Image {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	t.Cleanup(func() { im.Close() })
	return im
}

// served is a client of a server that has some files by their paths, and what it was asked for.
func served(t *testing.T, files map[string]string) (c *debuginfod.Client, asked *[]string) {
	t.Helper()
	asked = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		*asked = append(*asked, kind)
		if file := files[r.URL.Path]; file != "" {
			http.ServeFile(w, r, file)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return &debuginfod.Client{URLs: []string{s.URL}, CacheDir: filepath.Join(t.TempDir(), "cache")}, asked
}

func TestWhatAnImageLacksIsFetched(t *testing.T) {
	p := split(t)
	debugInfo, executable := "/buildid/"+p.id+"/debuginfo", "/buildid/"+p.id+"/executable"
	for name, c := range map[string]struct {
		image  string
		types  bool
		server map[string]string
		asked  []string
		found  bool // a debug file, with debug information
	}{
		"names":                             {p.stripped, false, map[string]string{debugInfo: p.debug}, []string{"debuginfo"}, true},
		"types":                             {p.stripped, true, map[string]string{debugInfo: p.debug}, []string{"debuginfo"}, true},
		"names that are there":              {p.symbolsOnly, false, map[string]string{debugInfo: p.debug}, nil, false},
		"types besides names":               {p.symbolsOnly, true, map[string]string{debugInfo: p.debug}, []string{"debuginfo"}, true},
		"the whole executable":              {p.stripped, false, map[string]string{executable: p.whole}, []string{"debuginfo", "executable"}, true},
		"a stripped executable":             {p.stripped, false, map[string]string{executable: p.stripped}, []string{"debuginfo", "executable"}, false},
		"nothing":                           {p.stripped, true, nil, []string{"debuginfo", "executable"}, false},
		"types that the image has itself":   {p.whole, true, nil, nil, false},
		"another file than its ID promises": {p.stripped, false, map[string]string{debugInfo: realtest.Build(t, "count", "-g", "-Wl,--build-id")}, []string{"debuginfo", "executable"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := served(t, c.server)
			f := &debugfiles.Files{Fetcher: client}
			im := open(t, c.image)
			if _, err := f.Debug(im); !errors.Is(err, object.ErrNoDebug) || len(*asked) > 0 {
				t.Fatalf("before: %v, asked for %v", err, *asked)
			}
			for range 2 { // the second time nothing is left to be fetched, nor to be asked for
				f.Fetch(t.Context(), im, c.types)
			}
			if name != "another file than its ID promises" && !slices.Equal(*asked, c.asked) {
				t.Errorf("asked for %v, want %v", *asked, c.asked)
			}
			debug, err := f.Debug(im)
			if (err == nil) != c.found {
				t.Fatalf("%v", err)
			}
			if err == nil {
				defer debug.Close()
				if debug.ID() != p.id || debug.Section(".debug_info") == nil {
					t.Errorf("%s", debug.Name())
				}
			}
		})
	}
}

// What is on this machine is not fetched.
func TestDebugFoldersComeFirst(t *testing.T) {
	p := split(t)
	dir := t.TempDir()
	data, err := os.ReadFile(p.debug)
	realtest.Must(t, err)
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "stripped.debug"), data, 0o600))
	client, asked := served(t, nil)
	f := &debugfiles.Files{Dirs: []string{dir}, Fetcher: client}
	// By a link too, as the files of processes are opened.
	link := filepath.Join(t.TempDir(), "7f00-8000")
	realtest.Must(t, os.Symlink(p.stripped, link))
	for _, path := range []string{p.stripped, link} {
		im := open(t, path)
		f.Fetch(t.Context(), im, true)
		debug, err := f.Debug(im)
		if err != nil || len(*asked) > 0 {
			t.Fatalf("%v, asked for %v", err, *asked)
		}
		debug.Close()
	}
}

func TestFailuresAreToldOnce(t *testing.T) {
	p := split(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }))
	defer s.Close()
	told := 0
	f := &debugfiles.Files{
		Fetcher: &debuginfod.Client{URLs: []string{s.URL}, CacheDir: filepath.Join(t.TempDir(), "cache")},
		Failed:  func(error) { told++ },
	}
	im := open(t, p.stripped)
	for range 3 {
		f.Fetch(t.Context(), im, true)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
