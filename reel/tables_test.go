package reel

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestPathsLongerThanAnyFilesAreCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "long.reel")
	w, err := Create(name, Header{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{strings.Repeat("/folder", 1<<17) + "/program", strings.Repeat("p", maxPath), ""} {
		if _, err := w.AddImage(Image{Path: path, ID: "00ff"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := f.Images()
	if len(got) != 3 || len(got[0].Path) != maxPath || !strings.HasSuffix(got[0].Path, "/folder/program") || got[0].ID != "00ff" || got[1].Path != strings.Repeat("p", maxPath) || got[2].Path != "" {
		t.Errorf("%.200v", got)
	}
}
