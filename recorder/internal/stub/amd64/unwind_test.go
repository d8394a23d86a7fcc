package amd64

import (
	"errors"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// compiled is code with its unwind information, read as any other.
type compiled struct {
	*Code
	table *cfi.Table
	eval  cfi.Evaluator
}

// compileFrames makes the code of functions of a library, and reads its unwind information.
func compileFrames(t *testing.T, cfg stub.Config, fns []stub.Probe) *compiled {
	t.Helper()
	return compileFramesTo(t, cfg, fns, nil)
}

// compileFramesTo is compileFrames to a buffer.
func compileFramesTo(t *testing.T, cfg stub.Config, fns []stub.Probe, buf []byte) *compiled {
	t.Helper()
	const base = 0x6000_0000
	cfg.Gate, cfg.Ring = base-amd64.PageSize, 1<<40
	code, err := compile(base, cfg, fns, buf)
	if err != nil {
		t.Fatal(err)
	}
	header, err := cfi.ParseEHFrameHdr(code.Bytes[:stub.UnwindHead], base, cfi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if header.EHFramePtr <= base || header.EHFramePtr >= base+stub.UnwindHead {
		t.Fatalf("the .eh_frame is at %#x", header.EHFramePtr)
	}
	table, err := cfi.ParseEHFrame(code.Bytes[header.EHFramePtr-base:stub.HookAt], header.EHFramePtr, cfi.Options{})
	if err == nil {
		err = table.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	fdes := table.FDEs()
	if len(fdes) != len(header.Entries) {
		t.Fatalf("%d FDEs, %d in the header", len(fdes), len(header.Entries))
	}
	for i, f := range fdes {
		if e := header.Entries[i]; e.Start != f.Start {
			t.Errorf("FDE %d begins at %#x, the header says %#x", i, f.Start, e.Start)
		}
	}
	return &compiled{Code: code, table: table}
}

// stands is the instruction that the code at pc stands for, by what an unwinder finds.
func (c *compiled) stands(t *testing.T, pc uint64) uint64 {
	t.Helper()
	const sp = 0x7ffe_0000
	f, ok := c.table.Find(pc)
	if !ok {
		t.Fatalf("nothing is said of %#x", pc)
	}
	row, err := f.RowAt(pc)
	if err != nil {
		t.Fatal(err)
	}
	in := &cfi.EvalInput{
		CFA: sp + 1, HasCFA: true,
		Reg: func(reg uint32) (uint64, bool) { return pc, reg == amd64.DWARFReturnAddress },
		Read: func(addr uint64, b []byte) error {
			if addr < c.Base || addr-c.Base > uint64(len(c.Bytes)-len(b)) {
				return errors.New("outside of the arena")
			}
			copy(b, c.Bytes[addr-c.Base:])
			return nil
		},
	}
	rule := row.RA()
	if !f.CIE.SignalFrame || rule.Kind != cfi.ValExpression || row.CFA.Reg != 7 || row.CFA.Offset != 1 {
		t.Fatalf("%#x: CFA %v, return address %v", pc, row.CFA, rule)
	}
	to, err := c.eval.Eval(rule.Expr, in)
	if err != nil {
		t.Fatalf("%#x: %v", pc, err)
	}
	return to
}

// selectedOf are the functions of a plan that have a tier, n at most.
func selectedOf(im *plan.Image, fns []plan.Function, n int) (selected []stub.Probe) {
	for i := range fns {
		if fns[i].Tier != plan.TierNone && len(selected) < n {
			selected = append(selected, stub.Probe{Function: &fns[i], Image: im, ID: uint32(i + 1), Slide: 0x7000_0000})
		}
	}
	return selected
}

// An unwinder finds for each stub the instruction that it stands for, be it at its event or at a moved instruction.
func TestUnwindersFindTheInstructionsThatStubsStandFor(t *testing.T) {
	im := realImage(t, "libc")
	fns := planImage(t, im)
	for _, n := range []int{InlineLimit, len(fns)} {
		for _, lazy := range []bool{false, true} {
			selected := selectedOf(im, fns, n)
			c := compileFrames(t, stub.Config{Lazy: lazy}, selected)
			copies, events := 0, 0
			for i := range selected {
				f := &selected[i]
				for k := range f.Sites {
					s := &f.Sites[k]
					if s.Kind != plan.SiteDisplaced {
						continue
					}
					for _, m := range im.Moved(s, nil) {
						pc := m.Addr + f.Slide
						to, ok := c.StubFor(pc)
						if !ok {
							t.Fatalf("%s: no copy of %#x", f.Name, pc)
						}
						if got := c.stands(t, to); got != pc {
							t.Fatalf("%s, lazy %v: the copy of %#x at %#x stands for %#x", f.Name, lazy, pc, to, got)
						}
						copies++
					}
				}
			}
			for _, p := range c.Patches {
				to, jumps := leadsTo(p)
				if !jumps || p.Island || to < c.Base || to >= c.Base+uint64(len(c.Bytes)) {
					continue
				}
				was, err := amd64.Decode(p.Old())
				target, direct := was.Target(p.Addr)
				// A jump that is led to the copy of what it leads to stands for that.
				if got := c.stands(t, to); got != p.Addr && !(err == nil && direct && got == target) {
					t.Fatalf("lazy %v: the stub at %#x of the site at %#x stands for %#x", lazy, to, p.Addr, got)
				}
				events++
			}
			if copies < n/2 || events < n/2 {
				t.Errorf("only %d copies and %d events of %d functions", copies, events, len(selected))
			}
		}
	}
}

// leadsTo is where the jump that is written at a site leads.
func leadsTo(p stub.Patch) (to uint64, jumps bool) {
	in, err := amd64.Decode(p.New())
	if err != nil || in.Kind != amd64.Jump {
		return 0, false
	}
	return in.Target(p.Addr)
}

// In the routines the CFA follows every push and pop, along every jump.
func TestTheStackIsDescribedAllThroughTheRoutines(t *testing.T) {
	im := realImage(t, "libc")
	selected := selectedOf(im, planImage(t, im), 2*InlineLimit)
	for _, cfg := range []stub.Config{{Lazy: true}, {Lazy: true, Lossless: true}, {Clock: stub.ClockExit}} {
		c := compileFrames(t, cfg, selected)
		depth := func(f *cfi.FDE, pc uint64) int64 {
			row, err := f.RowAt(pc)
			if err != nil || row.CFA.Reg != 7 {
				t.Fatalf("%#x: CFA %v, %v", pc, row.CFA, err)
			}
			return row.CFA.Offset
		}
		routines, jumps := 0, 0
		fdes := c.table.FDEs()
		for i := range fdes {
			f := &fdes[i]
			if f.CIE.SignalFrame {
				continue
			}
			routines++
			for pc := f.Start; pc < f.End; {
				in, err := amd64.Decode(c.Bytes[pc-c.Base:])
				if err != nil {
					t.Fatal(err)
				}
				before, next := depth(f, pc), pc+uint64(in.Len)
				if in.Kind == amd64.Return && before != 8 {
					t.Errorf("return at %#x with %d bytes on the stack", pc, before)
				}
				if to, direct := in.Target(pc); direct && in.Kind != amd64.Call && f.Contains(to) {
					jumps++
					if after := depth(f, to); after != before {
						t.Errorf("%#x: %d bytes on the stack, %d at %#x, where it jumps to", pc, before, after, to)
					}
				}
				if delta, known := in.StackDelta(); !in.Ends() && in.Kind != amd64.Call && next < f.End {
					if !known {
						t.Fatalf("%#x: what does it do to the stack?", pc)
					}
					if after := depth(f, next); after != before-int64(delta) {
						t.Errorf("%#x: %d bytes on the stack, then %d, where it moves the pointer by %d", pc, before, after, delta)
					}
				}
				pc = next
			}
		}
		if routines < 3 || jumps < 10 {
			t.Errorf("%d routines with %d jumps", routines, jumps)
		}
	}
}
