package recorder

import (
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/target"
)

// With captures, conditions and everything else that there may be an arena has room for its code, and at its beginning for what tells
// unwinders of it.
func TestArenasHaveRoomForCaptures(t *testing.T) {
	libraries := realLibraries(t)
	o, err := object.Open(libraries[0])
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	im, err := probe.NewImage(o, "library")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := im.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const slide = 0x555500000000
	var all []probe.Selected
	for i := range plan {
		if plan[i].Tier != probe.TierNone && len(all) < maxCaptured {
			all = append(all, probe.Selected{Function: &plan[i], Image: im, ID: uint32(len(all) + 1), Slide: slide})
		}
	}
	number := probe.Operand{Reg: amd64.RDI, Size: 8, Path: []int32{8, 16, 24}, Memory: true}
	direct := probe.Field{Value: probe.Operand{Reg: amd64.RSI, Size: 8}}
	values := []probe.Field{{Value: number}, {Kind: probe.FieldBytes, Value: number, Len: number, Max: 64}, {Kind: probe.FieldString, Value: number, Max: 64}}
	in := probe.Condition{Value: probe.Operand{Reg: amd64.RCX, Size: 8}, With: 1 << 40}
	for name, make := range map[string]func() *probe.Captures{
		"memory": func() *probe.Captures {
			return &probe.Captures{Entry: &probe.Capture{Fields: values, Where: []probe.Condition{{Value: number}}}, Return: &probe.Capture{Fields: values}}
		},
		"registers": func() *probe.Captures {
			fields := []probe.Field{direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct}
			return &probe.Captures{Entry: &probe.Capture{Fields: fields}, Return: &probe.Capture{Fields: fields}, When: []probe.Condition{in, in, in}}
		},
	} {
		for _, n := range []int{1, 10, len(all)} {
			for _, lazy := range []bool{false, true} {
				captures := map[uint32]*probe.Captures{}
				for id := range n {
					c := make()
					if err := c.Entry.LayOut(); err != nil {
						t.Fatal(err)
					}
					if err := c.Return.LayOut(); err != nil {
						t.Fatal(err)
					}
					captures[uint32(id+1)] = c
				}
				rt := probe.Config{Ring: 1 << 40, Lazy: lazy, Captures: captures, Args: 1 << 41, Areas: 1 << 42, Watches: 1 << 43, Overwrite: !lazy, Follow: lazy, Lossless: true}
				a := &target.Arena{Fns: all, Base: slide + 1<<28}
				a.Bound(&rt)
				if err := a.Compile(rt); err != nil {
					t.Fatalf("%s of %d functions, lazy %v: %v", name, n, lazy, err)
				}
			}
		}
	}
}
