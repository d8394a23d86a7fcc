package sourcelines

import (
	"context"
	"debug/elf"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

func TestFunctionsAreFoundInWhatHasTheRightID(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	target := realtest.Build(t, "threads", "-Wl,--build-id")
	fn := reel.Function{Name: "counted_a", Addr: addressOf(t, target, "counted_a")}
	right := imageOf(t, target)
	for _, k := range []struct {
		name    string
		image   reel.Image
		maxInfo int64
		want    string
	}{
		{"as recorded", right, 0, "threads.c"},
		{"small enough", right, 1 << 20, "threads.c"},
		{"too large", right, 1, ""},
		{"another ID", reel.Image{Path: target, ID: "00ff"}, 0, ""},
		{"no ID", reel.Image{Path: target}, 0, ""},
		{"a relative path", reel.Image{Path: "threads", ID: right.ID}, 0, ""},
	} {
		l := New(&symbols.Finder{Workers: 1}, k.maxInfo)
		if file, line := l.Of(&k.image, &fn); file != "" || line != 0 {
			t.Errorf("%s: %s:%d before it was opened", k.name, file, line)
		}
		l.Open(context.Background(), &k.image)
		file, line := l.Of(&k.image, &fn)
		if base := filepath.Base(file); (k.want == "") != (file == "") || file != "" && base != k.want || (line == 0) != (k.want == "") {
			t.Errorf("%s: %s:%d", k.name, file, line)
		}
		if l.Opened(&k.image) != Findable(&k.image) {
			t.Errorf("%s: it would be looked for again", k.name)
		}
		if err := l.Close(); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}

func imageOf(t *testing.T, path string) reel.Image {
	t.Helper()
	f, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return reel.Image{Path: path, ID: f.ID()}
}

func addressOf(t *testing.T, path, name string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}
