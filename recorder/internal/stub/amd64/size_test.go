package amd64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// What is in an arena is what recording takes of a program's memory, most of it for functions that are never called.
func TestStubsOfManyFunctionsTakeLittle(t *testing.T) {
	const most = 25 // bytes a site of libc, the copies of its instructions included
	for name, lazy := range map[string]bool{"at once": false, "on the first call": true} {
		t.Run(name, func(t *testing.T) {
			im := realImage(t, "libc")
			planned := planImage(t, im)
			var fns []stub.Probe
			sites := 0
			for i := range planned {
				if f := &planned[i]; f.Tier != plan.TierNone {
					fns = append(fns, stub.Probe{Function: f, Image: im, ID: uint32(len(fns) + 1)})
					sites += len(f.Sites)
				}
			}
			const base = 1 << 30
			code, err := compile(base, stub.Config{Gate: base - 4096, Ring: 1 << 40, Lazy: lazy}, fns, nil)
			if err != nil {
				t.Fatal(err)
			}
			last := len(fns) - 1
			if a := float64(code.stubs[last]-code.stubs[0]) / float64(sites); a > most {
				t.Errorf("%.1f bytes a site, want at most %d", a, most)
			} else {
				t.Logf("%.1f bytes a site", a)
			}
		})
	}
}
