package unwind_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// shadow keeps the calls that are under way by looking at each instruction.
type shadow struct {
	calls []call // outermost first
	code  map[uint64]amd64.Inst
	x     *target
}

type call struct {
	slot uint64 // address of the return address
	ra   uint64
}

// after takes the registers after the instruction at pc.
func (s *shadow) after(pc uint64, r *process.Regs) {
	in, ok := s.code[pc]
	if !ok {
		var buf [amd64.MaxLen]byte
		n := s.x.p.ReadUpTo(buf[:], pc)
		var err error
		if in, err = amd64.Decode(buf[:n]); err != nil {
			s.x.t.Fatalf("instruction at %#x: %v", pc, err)
		}
		s.code[pc] = in
	}
	for n := len(s.calls); n > 0 && s.calls[n-1].slot < r.Rsp; n-- {
		s.calls = s.calls[:n-1]
	}
	if in.Kind == amd64.Call || in.Kind == amd64.IndirectCall {
		s.calls = append(s.calls, call{r.Rsp, pc + uint64(in.Len)})
	}
}

// returns lists the return addresses, innermost first.
func (s *shadow) returns() []uint64 {
	out := make([]uint64, 0, len(s.calls))
	for _, c := range slices.Backward(s.calls) {
		out = append(out, c.ra)
	}
	return out
}

// wrongInGCC is lea -8(%r10), %rsp: without optimization gcc restores rbp before it, in
// functions with aligned frames, and its CFI does not say so.
const wrongInGCC = 0xf8628d49

// stepThrough steps through the target at several moments and holds the walk at each
// instruction against the calls that were made. It returns how many it looked at.
func stepThrough(t *testing.T, x *target, sessions, length int) (looked int) {
	t.Helper()
	w := unwind.NewWalker(unwind.AMD64, x.maps, unwind.Options{})
	wrong := map[uint64]string{}
	var frames []unwind.Frame
	for range sessions {
		s := &shadow{x: x, code: map[uint64]amd64.Inst{}}
		err := x.p.EachThread(context.Background(), process.StopOptions{}, []int{x.p.Pid()}, func(th *process.Thread, err error) error {
			if err != nil {
				return err
			}
			regs, err := th.Regs()
			if err != nil {
				return err
			}
			snapshot := x.snapshot(regs)
			frames, _ = w.Walk(&snapshot, frames[:0])
			for k := len(frames) - 1; k > 0; k-- {
				s.calls = append(s.calls, call{frames[k].SP - 8, frames[k].PC})
			}
			pc := regs.Rip
			_, err = th.Step(length, func(r *process.Regs) bool {
				if r.Rip != pc {
					s.after(pc, r)
				}
				pc = r.Rip
				looked++
				snapshot := x.snapshot(r)
				var end unwind.End
				frames, end = w.Walk(&snapshot, frames[:0])
				if x.words(r.Rip, 1)[0]&0xffffffff == wrongInGCC {
					return false
				}
				if want := s.returns(); !end.Complete() || !slices.Equal(pcs(frames)[1:], want) {
					wrong[pc] = fmt.Sprintf("end %v, by %v\nwalked %#x\ncalled %#x", end, frames[min(1, len(frames)-1)].By, pcs(frames)[1:], want)
				}
				return false
			})
			return stepError(err)
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	for pc, how := range wrong {
		m, _ := x.maps.Mapping(pc)
		t.Errorf("at %#x (%#x in its mapping): %s", pc, pc-m.Start, how)
	}
	return looked
}

// stepError leaves out that a system call is reached, which ends a session.
func stepError(err error) error {
	if err != nil && strings.Contains(err.Error(), "is a system call") {
		return nil
	}
	return err
}

func TestEachInstructionUnwindsToTheCallsThatWereMade(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	for name, flags := range map[string][]string{
		"optimized":           {"-Wl,-z,lazy"},
		"unoptimized":         {"-O0"},
		"with frame pointers": {"-fno-omit-frame-pointer"},
		"clang":               {"cc=clang-19"},
		"static":              {"-static"},
		"for size":            {"-Os", "-fno-plt"},
	} {
		t.Run(name, func(t *testing.T) {
			x := start(t, realtest.Build(t, "shapes_of_frames", flags...))
			if looked := stepThrough(t, x, 4, 4000); looked < 1000 {
				t.Errorf("only %d instructions were looked at", looked)
			}
		})
	}
}
