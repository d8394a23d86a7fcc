package amd64

import (
	"bytes"
	"testing"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// checkCode holds the code of any plan against what must be true of all: each patch changes something.
func checkCode(t *testing.T, data []byte) {
	t.Helper()
	o, err := object.Parse("tiny", data)
	if err != nil {
		return
	}
	im, err := plan.NewImage(o, "tiny")
	if err != nil {
		return
	}
	fns, err := im.Plan(t.Context())
	if err != nil {
		return
	}
	var selected []stub.Probe
	for i := range fns {
		if fns[i].Tier != plan.TierNone {
			selected = append(selected, stub.Probe{Function: &fns[i], Image: im, ID: uint32(i + 1)})
		}
	}
	code, err := compile(0x100000, stub.Config{Gate: 0x200000, Ring: 1 << 40}, selected, nil)
	if err != nil {
		return // operands that lead nowhere near
	}
	for _, p := range code.Patches {
		if len(p.New()) == 0 || bytes.Equal(p.Old(), p.New()) {
			t.Fatalf("the patch at %#x makes % x of % x", p.Addr, p.New(), p.Old())
		}
	}
}

// FuzzCompile makes stubs for images of made-up code, and for changed copies of a real one.
func FuzzCompile(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xE5, 0x74, 0x02, 0x5D, 0xC3, 0xFF, 0xE0, 0xE9, 0, 0, 0, 0}, uint64(3), true)
	f.Add([]byte{0x48, 0x8D, 0x15, 0, 1, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xD0, 0xFF, 0xE0, 0xC3}, uint64(1), true)
	f.Add([]byte{1, 2, 3}, uint64(7), false)
	real := testimage.Small()
	f.Fuzz(func(t *testing.T, code []byte, seed uint64, made bool) {
		checkCode(t, testimage.Damaged(real, code, seed, made))
	})
}

func TestStubsOfHostileImages(t *testing.T) {
	for name, data := range testimage.Hostile() {
		t.Run(name, func(t *testing.T) { checkCode(t, data) })
	}
}
