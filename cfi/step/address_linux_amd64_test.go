package step

import (
	"testing"

	"github.com/callreel/callreel/object"
)

// addressOf returns the link address of a symbol.
func addressOf(t *testing.T, path, name string) uint64 {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	list, err := im.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for k := range list {
		if list[k].Name == name {
			return list[k].Addr
		}
	}
	t.Fatalf("%s: no symbol %s", path, name)
	return 0
}
