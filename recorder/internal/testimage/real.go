package testimage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// paths are where the images stand; each is the first that exists.
var paths = map[string][]string{
	"libc":      {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"},
	"libstdc++": {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6", "/usr/lib/libstdc++.so.6"},
	"libcrypto": {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/aarch64-linux-gnu/libcrypto.so.3", "/usr/lib64/libcrypto.so.3", "/usr/lib/libcrypto.so.3"},
	"redis":     {"/usr/bin/redis-server"},
	"python":    {"/usr/bin/python3.11", "/usr/bin/python3", "/usr/bin/python3.13"},
	"gdb":       {"/usr/bin/gdb"},
	"node":      {"/usr/bin/node"},
	"ld-linux":  {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"},
}

// Path is where the image of that name stands, without symbolic links. A test that there is none for is skipped, or fails where it must
// not be, see realtest.NeedThat.
func Path(t testing.TB, name string) string {
	t.Helper()
	for _, path := range paths[name] {
		if path, err := filepath.EvalSymlinks(path); err == nil {
			return path
		}
	}
	realtest.NeedThat(t, name, os.ErrNotExist)
	return ""
}

// Open opens the image at path, for as long as the test runs.
func Open(t testing.TB, path string) *object.Image {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			realtest.NeedThat(t, path, err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// GoTool is where the go command stands: a large Go program that is there wherever tests are run by it.
func GoTool(t testing.TB) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(realtest.Tool(t, realtest.GoTool))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
