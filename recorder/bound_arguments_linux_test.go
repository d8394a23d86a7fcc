package recorder

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// With captures, conditions and everything else that there may be an arena has room for its code, and at its beginning for what tells
// unwinders of it.
func TestArenasHaveRoomForCaptures(t *testing.T) {
	libraries := realLibraries(t)
	all := probesOf(t, libraries[0], capture.MaxFunctions)
	number := stub.Operand{Reg: 7, Size: 8, Path: []int32{8, 16, 24}, Memory: true}
	direct := stub.Field{Value: stub.Operand{Reg: 6, Size: 8}}
	values := []stub.Field{{Value: number}, {Kind: stub.FieldBytes, Value: number, Len: number, Max: 64}, {Kind: stub.FieldString, Value: number, Max: 64}}
	in := stub.Condition{Value: stub.Operand{Reg: 1, Size: 8}, With: 1 << 40}
	for name, make := range map[string]func() *stub.Captures{
		"memory": func() *stub.Captures {
			return &stub.Captures{Entry: &stub.Capture{Fields: values, Conditions: []stub.Condition{{Value: number}}}, Return: &stub.Capture{Fields: values}}
		},
		"registers": func() *stub.Captures {
			fields := []stub.Field{direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct, direct}
			return &stub.Captures{Entry: &stub.Capture{Fields: fields}, Return: &stub.Capture{Fields: fields}, Conditions: []stub.Condition{in, in, in}}
		},
	} {
		for _, n := range []int{1, 10, len(all)} {
			for _, lazy := range []bool{false, true} {
				captures := map[uint32]*stub.Captures{}
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
				rt := stub.Config{Ring: 1 << 40, Lazy: lazy, Captures: captures, Args: 1 << 41, Areas: 1 << 42, Predicates: 1 << 43, Overwrite: !lazy, Follow: lazy, Lossless: true}
				a := &target.Arena{Fns: all, Base: slide + 1<<26}
				a.Bound(&rt)
				if err := a.Compile(rt); err != nil {
					t.Fatalf("%s of %d functions, lazy %v: %v", name, n, lazy, err)
				}
			}
		}
	}
}
