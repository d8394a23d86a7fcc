package plan

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/recorder/internal/testimage"
)

// realImage opens an installed image, see testimage.Path.
func realImage(t testing.TB, name string) *Image {
	t.Helper()
	return openTestImage(t, testimage.Path(t, name))
}

func openTestImage(t testing.TB, path string) *Image {
	t.Helper()
	im, err := NewImage(testimage.Open(t, path), filepath.Base(path))
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

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
