package amd64

import (
	"os"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// The room for an arena is fixed before its code is made; events of Go functions are inline, however many there are.
func TestGoStubsHaveRoom(t *testing.T) {
	im := openTestImage(t, testimage.GoTool(t))
	if im.Go == nil || im.Go.Unsupported != nil {
		realtest.NeedThat(t, "a static go command of a version that is known", os.ErrNotExist)
	}
	fns := planImage(t, im)
	var all []stub.Probe
	for i := range fns {
		if fns[i].Tier != plan.TierNone {
			all = append(all, stub.Probe{Function: &fns[i], Image: im, ID: uint32(len(all) + 1)})
		}
	}
	const base = 1 << 28
	for _, n := range []int{1, InlineLimit, len(all)} {
		code, err := compile(base, stub.Config{Gate: base - 4096, Ring: 1 << 40, Go: &golang.Runtime{GoID: im.Go.GoID}}, all[:n], nil)
		if err != nil {
			t.Fatal(err)
		}
		if room := bound(&stub.Config{}, all[:n]); uint64(len(code.Bytes)) > room {
			t.Errorf("%d functions: %d bytes in room for %d", n, len(code.Bytes), room)
		}
	}
}
