package overdue

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/unwind"
)

// Function is where a chosen function lies.
type Function struct {
	Addr, Size uint64
	ID         uint32
}

// Functions finds functions by addresses of their code.
type Functions struct{ list []Function }

// NewFunctions takes a list over.
func NewFunctions(list []Function) *Functions {
	slices.SortFunc(list, func(a, b Function) int { return cmp.Compare(a.Addr, b.Addr) })
	return &Functions{list}
}

// at is the ID of the function that has the address, 0 if none has.
func (f *Functions) at(pc uint64) uint32 {
	i, found := slices.BinarySearchFunc(f.list, pc, func(x Function, pc uint64) int { return cmp.Compare(x.Addr, pc) })
	if !found {
		i--
	}
	if i < 0 || pc-f.list[i].Addr >= f.list[i].Size {
		return 0
	}
	return f.list[i].ID
}

// Within are the calls on a stack, innermost frame first, that lie within one of its calls, the whole stack if that is none, as far as is says
// that they are wanted: outermost first. It returns false if the stack has no such call, or a signal has interrupted what lies within it.
func (f *Functions) Within(frames []unwind.Frame, call Call, is func(id uint32) bool) (calls []Call, found bool) {
	found = call == Call{}
	for i := 0; i+1 < len(frames); i++ {
		if frames[i].Flags&unwind.SignalFrame != 0 || frames[i+1].Flags&unwind.SignalFrame != 0 {
			return nil, false
		}
		pc := frames[i].PC
		if frames[i].Flags&unwind.Exact == 0 {
			pc--
		}
		c := Call{SP: uint32(frames[i+1].SP - returnSize), ID: f.at(pc)}
		if c.SP == call.SP && call != (Call{}) {
			found = c.ID == call.ID || c.ID == 0 // a stub's own frame, or a part of the function that lies elsewhere
			break
		}
		if c.ID != 0 && is(c.ID) {
			calls = append(calls, c)
		}
	}
	slices.Reverse(calls)
	return calls, found
}
