package recorder

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// inlineLimit is up to how many probes have their event code inline.
const inlineLimit = 256

// mostRoom is how many times as large as its code an arena with all functions is at most.
var mostRoom = map[string]uint64{"amd64": 5, "arm64": 6}

// An arena's size is fixed before its code is made.
func TestArenasHaveRoomForTheirCode(t *testing.T) {
	for _, path := range realLibraries(t) {
		name := filepath.Base(path)
		all := probesOf(t, path, math.MaxInt)
		for _, n := range []int{1, 16, inlineLimit, inlineLimit + 1, len(all)} {
			for from := 0; from+n <= len(all); from += max(n, len(all)/20) {
				for _, rt := range []stub.Config{{}, {Lazy: true}, {Lazy: true, Min: true, Threads: true, Depth: true, Inside: true, Areas: 1 << 41}} {
					lazy := rt.Lazy
					rt.Ring = 1 << 40
					a := &target.Arena{Fns: all[from : from+n], Base: slide + 1<<26}
					a.Bound(&rt)
					if err := a.Compile(rt); err != nil {
						t.Fatalf("%s, %d functions from %s on: %v", name, n, all[from].Name, err)
					}
					if n == len(all) {
						t.Logf("%s, lazy %v: %d bytes, room for %d", name, lazy, len(a.Code.Bytes), a.Size)
						if !rt.Min && a.Size > mostRoom[runtime.GOARCH]*uint64(len(a.Code.Bytes)) {
							t.Errorf("%s, lazy %v: %d bytes in room for %d", name, lazy, len(a.Code.Bytes), a.Size)
						}
					}
				}
			}
		}
	}
}

// realLibraries are libraries that are on most machines.
func realLibraries(t *testing.T) []string {
	var found []string
	for _, name := range []string{"libc.so.6", "libstdc++.so.6"} {
		for _, dir := range []string{"/lib/x86_64-linux-gnu/", "/lib/aarch64-linux-gnu/", "/lib64/", "/usr/lib/"} {
			if path, err := filepath.EvalSymlinks(dir + name); err == nil {
				found = append(found, path)
				break
			}
		}
	}
	if len(found) == 0 {
		realtest.Need(t, realtest.GXX)
		t.Fatal(os.ErrNotExist)
	}
	return found
}

// probesOf are the probes of a file's functions, up to most, at a place where it could be loaded.
func probesOf(t *testing.T, path string, most int) []stub.Probe {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	im, err := plan.NewImage(o, filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	planned, err := im.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []stub.Probe
	for i := range planned {
		if planned[i].Tier != plan.TierNone && len(all) < most {
			all = append(all, stub.Probe{Function: &planned[i], Image: im, ID: uint32(len(all) + 1), Slide: slide})
		}
	}
	return all
}

const slide = 0x555500000000
