package probe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// realImages are where the images stand that plans are tried on; each is the first that exists.
var realImages = map[string][]string{
	"libc":      {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"},
	"libstdc++": {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6", "/usr/lib/libstdc++.so.6"},
	"libcrypto": {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib64/libcrypto.so.3", "/usr/lib/libcrypto.so.3"},
	"redis":     {"/usr/bin/redis-server"},
	"python":    {"/usr/bin/python3.11", "/usr/bin/python3", "/usr/bin/python3.13"},
	"gdb":       {"/usr/bin/gdb"},
	"node":      {"/usr/bin/node"},
	"ld-linux":  {"/lib64/ld-linux-x86-64.so.2"},
}

// realImage opens one of them.
func realImage(t testing.TB, name string) *Image {
	t.Helper()
	for _, path := range realImages[name] {
		if path, err := filepath.EvalSymlinks(path); err == nil {
			return openTestImage(t, path)
		}
	}
	realtest.NeedThat(t, name, os.ErrNotExist)
	return nil
}

func openTestImage(t testing.TB, path string) *Image {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			realtest.NeedThat(t, path, err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	im, err := NewImage(o, filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func planImage(t testing.TB, im *Image) []Function {
	t.Helper()
	fns, err := im.Plan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return fns
}

// shares counts functions by their reason; those that are traced have none.
func shares(fns []Function) map[Reason]int {
	n := map[Reason]int{}
	for i := range fns {
		n[fns[i].Reason]++
	}
	return n
}

func TestSharesOfRealImagesThatAreTraced(t *testing.T) {
	for name, least := range map[string]float64{"libc": 0.98, "libstdc++": 0.98, "libcrypto": 0.98, "redis": 0.98, "python": 0.98, "gdb": 0.98} {
		t.Run(name, func(t *testing.T) {
			fns := planImage(t, realImage(t, name))
			by := shares(fns)
			if share := float64(by[ReasonNone]) / float64(len(fns)); share < least {
				t.Errorf("%.1f %% of %d functions are traced, want %.0f %%", 100*share, len(fns), 100*least)
			}
			t.Logf("%d functions: %v", len(fns), by)
		})
	}
}
