package object

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// All bytes of a file are written, and none are kept; a file that has changed is an error.
func TestAnImageIsWrittenWhole(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("this test lacks /proc: ", err)
	}
	path := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(path, self, 0o600); err != nil {
		t.Fatal(err)
	}
	im, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	before := im.contents.taken.Load()
	var out bytes.Buffer
	n, err := im.WriteTo(&out)
	if err != nil || n != int64(len(self)) || !bytes.Equal(out.Bytes(), self) {
		t.Errorf("%d of %d bytes, %v", n, len(self), err)
	}
	if after := im.contents.taken.Load(); after != before {
		t.Errorf("%d bytes are kept", after-before)
	}
	if err := os.Truncate(path, int64(len(self)/2)); err != nil {
		t.Fatal(err)
	}
	if _, err := im.WriteTo(&out); !errors.Is(err, ErrChanged) {
		t.Errorf("of a truncated file: %v", err)
	}
}
