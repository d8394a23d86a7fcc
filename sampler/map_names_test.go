package sampler

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// In a container a file has another path than here, and only what is open leads to it.
func TestFileThatIsNotAtItsPathHereHasLines(t *testing.T) {
	realtest.Need(t, realtest.GXX)
	path := realtest.Build(t, "deep", "-Wl,--build-id")
	im := &Image{
		Path: filepath.Join(t.TempDir(), "elsewhere"),
		open: func(*Image) (*object.Image, error) { return object.Open(path) },
	}
	file, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if file.ID() == "" {
		t.Fatal("the target has no build ID")
	}
	for _, s := range file.Segments() {
		if s.Type == object.SegmentLoad {
			const page = object.MinPageSize - 1
			im.regions = append(im.regions, region{
				start: s.Addr &^ page, end: (s.Addr + s.MemSize + page) &^ page, offset: s.MappedFrom(0), exec: s.Perm&object.PermX != 0, path: im.Path,
			})
		}
	}
	defer func() {
		if err := im.close(); err != nil {
			t.Error(err)
		}
	}()
	names := NewMapNames(context.Background(), &symbols.Finder{})
	defer func() {
		if err := names.Close(); err != nil {
			t.Error(err)
		}
	}()
	functions, err := file.FunctionSymbols()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range functions {
		if !strings.Contains(s.Name, "deep5level") {
			continue
		}
		calls := names.Calls(im, s.Addr)
		if len(calls) == 0 || !strings.HasSuffix(calls[0].File, "deep.cc") || calls[0].Line == 0 {
			t.Errorf("%s: %+v", s.Name, calls)
		}
		found++
	}
	if found == 0 {
		t.Error("the target has no function to name")
	}
}
