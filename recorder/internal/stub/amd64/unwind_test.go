package amd64

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
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

// stackAt is the stack pointer that an unwinder finds for the function that the code at pc stands for, with the thread's at sp.
func (c *compiled) stackAt(t *testing.T, pc, sp uint64) uint64 {
	t.Helper()
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
		Reg: func(reg uint32) (uint64, bool) {
			if reg == uint32(amd64.RSP.DWARF()) {
				return sp, true
			}
			return pc, reg == amd64.DWARFReturnAddress
		},
		Read: func(addr uint64, b []byte) error {
			if addr < c.Base || addr-c.Base > uint64(len(c.Bytes)-len(b)) {
				return errors.New("outside of the arena")
			}
			copy(b, c.Bytes[addr-c.Base:])
			return nil
		},
	}
	v, err := c.eval.Eval(row.Reg(uint32(amd64.RSP.DWARF())).Expr, in)
	if err != nil {
		t.Fatalf("%#x: %v", pc, err)
	}
	return v
}

// markedOf are markers of an image's functions, alone, or with the functions that they are in.
func markedOf(t *testing.T, name string, with bool) (im *plan.Image, selected []stub.Probe) {
	t.Helper()
	im = realImage(t, name)
	notes, err := sdt.Read(im.Object)
	if err != nil || len(notes) == 0 {
		realtest.NeedThat(t, name+" with markers", errors.Join(err, errors.New("there are none")))
	}
	for i := range notes {
		im.Marks = append(im.Marks, notes[i].Addr)
	}
	fns := planImage(t, im)
	host := map[uint64]int{}
	for i := range fns {
		if with && fns[i].Tier != plan.TierNone && len(selected) < 1<<12 {
			host[fns[i].Addr] = len(selected) + 1
			selected = append(selected, stub.Probe{Function: &fns[i], Image: im, ID: uint32(i + 1), Slide: 0x7000_0000})
		}
	}
	for i := range im.Marked {
		m, id := &im.Marked[i], ring.MarkID(uint32(i+1))
		switch k := host[m.Host]; {
		case k != 0 && m.With == plan.MarkJoined:
			selected[k-1].Marks = append(selected[k-1].Marks, stub.Joined{Addr: m.Addr, ID: id})
		case k != 0 && m.With == plan.MarkLost || m.Alone.Tier == plan.TierNone:
		default:
			selected = append(selected, stub.Probe{Function: &m.Alone, Image: im, ID: id, Slide: 0x7000_0000})
		}
	}
	return im, selected
}

// At each instruction of a marker's stub an unwinder finds the function's stack pointer, though the thread's is lower at its event.
func TestUnwindersFindTheStackOfMarkers(t *testing.T) {
	for _, with := range []bool{false, true} {
		_, selected := markedOf(t, "python", with)
		cfg := stub.Config{Args: 1 << 41, Captures: map[uint32]*stub.Captures{}}
		for i := range selected {
			if id := selected[i].ID; selected[i].IsMark() && i%2 == 0 {
				field := stub.Field{Value: stub.Operand{Origin: stub.OriginStack, Memory: true, Safe: true, Off: 8, Size: 8}}
				c := &stub.Capture{Fields: []stub.Field{field, {Value: stub.Operand{Origin: stub.OriginReg, Reg: 3, Memory: true, Size: 4}}}}
				if err := c.LayOut(); err != nil {
					t.Fatal(err)
				}
				cfg.Captures[id] = &stub.Captures{Entry: c}
			}
		}
		c := compileFrames(t, cfg, selected)
		end := c.Base + uint64(len(c.Bytes))
		marks, low := 0, 0
		for i := range c.Patches {
			p := &c.Patches[i]
			to, jumps := leadsTo(*p)
			if !jumps || p.Island || to < c.Base || to >= end || !ring.IsMarkID(p.ID) {
				continue
			}
			marks++
			const sp = 0x7ffe_0000
			lowered := uint64(0)
			for pc := to; pc < end; {
				in, err := amd64.Decode(c.Bytes[pc-c.Base:])
				if err != nil {
					t.Fatal(err)
				}
				if got := c.stackAt(t, pc, sp-lowered); got != sp {
					t.Fatalf("at %#x of the stub at %#x, %d lower, the stack is %d bytes off", pc, to, lowered, int64(got-sp))
				}
				if lowered != 0 {
					low++
				}
				raw := c.Bytes[pc-c.Base:][:in.Len]
				switch {
				case string(raw) == "\x48\x8D\x64\x24\x80":
					lowered = redZone
				case len(raw) == 8 && string(raw[:4]) == "\x48\x8D\xA4\x24":
					lowered = 0
				}
				pc += uint64(in.Len)
				if in.Ends() {
					break
				}
			}
			if lowered != 0 {
				t.Errorf("the stub at %#x ends with the stack lowered", to)
			}
		}
		if marks == 0 || low == 0 {
			t.Errorf("%d stubs of markers, %d instructions with the stack lowered", marks, low)
		}
	}
}

// What is bounded before code is made holds for markers.
func TestTheCodeOfMarkersIsBounded(t *testing.T) {
	for _, with := range []bool{false, true} {
		_, selected := markedOf(t, "python", with)
		cfg := stub.Config{Args: 1 << 41, Predicates: 1 << 42, Captures: map[uint32]*stub.Captures{}, MarkTriggers: map[uint32][]stub.MarkTrigger{}}
		for i := range selected {
			ids := []uint32{}
			if selected[i].IsMark() {
				ids = append(ids, selected[i].ID)
			}
			for _, m := range selected[i].Marks {
				ids = append(ids, m.ID)
			}
			for _, id := range ids {
				c := &stub.Capture{}
				for range 5 {
					c.Fields = append(c.Fields, stub.Field{Kind: stub.FieldString, Max: 64, Value: stub.Operand{Origin: stub.OriginReg, Reg: 3, Size: 8}},
						stub.Field{Value: stub.Operand{Origin: stub.OriginReg, Reg: 5, Size: 8}})
				}
				if err := c.LayOut(); err != nil {
					t.Fatal(err)
				}
				cfg.Captures[id] = &stub.Captures{Entry: c}
				cfg.MarkTriggers[id] = []stub.MarkTrigger{{Key: id, Begin: true, End: true, Predicates: stub.Predicates{Count: 1}}, {Key: id, Begin: true, Predicates: stub.Predicates{Count: 1}}}
			}
		}
		most := Generator{}.Bound(&cfg, selected)
		code := compileFrames(t, cfg, selected)
		if n := uint64(len(code.Bytes)); n > most {
			t.Errorf("%d bytes, and at most %d were to be expected", n, most)
		}
	}
}

// Each marker has one switch, whose instruction is its event's first.
func TestEachMarkerHasASwitch(t *testing.T) {
	for _, with := range []bool{false, true} {
		_, selected := markedOf(t, "python", with)
		c := compileFrames(t, stub.Config{}, selected)
		found := 0
		for i := range selected {
			list, err := c.Switches(i)
			if err != nil {
				t.Fatal(err)
			}
			for k := range list {
				w := &list[k]
				if v := binary.LittleEndian.Uint64(c.Bytes[w.At:]); v&w.Mask != w.On {
					t.Errorf("%s: a switch that is on is %#x, not %#x", selected[i].Name, v&w.Mask, w.On)
				}
				if w.Mark != 0 {
					found++
				}
			}
			if selected[i].IsMark() && (len(list) != 1 || list[0].Mark != selected[i].ID) {
				t.Errorf("marker %#x: %+v", selected[i].Addr, list)
			}
		}
		if found == 0 {
			t.Error("no switches of markers")
		}
	}
}
