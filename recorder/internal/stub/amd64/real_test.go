package amd64

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// realImage opens an installed image, see testimage.Path.
func realImage(t testing.TB, name string) *plan.Image {
	t.Helper()
	realtest.Need(t, realtest.AMD64) // whose code is in it
	return openTestImage(t, testimage.Path(t, name))
}

func openTestImage(t testing.TB, path string) *plan.Image {
	t.Helper()
	im, err := plan.NewImage(testimage.Open(t, path), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func planImage(t testing.TB, im *plan.Image) []plan.Function {
	t.Helper()
	fns, err := im.Plan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return fns
}
