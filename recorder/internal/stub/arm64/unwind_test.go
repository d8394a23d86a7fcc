package arm64

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Where things stand in the driver.
const (
	testArena = 0x6000_0000
	testRing  = 0x100_0000_0000
	pageBytes = 1 << 16
	glibcTID  = -1568 // as glibc 2.36 has it
)

// stackMove is what an instruction of stubs does to the stack pointer, and whether it stores or loads the link register there.
func stackMove(w uint32) (by int64, lrSaved, lrBack bool) {
	if w&0x3FC00000 == 0x29800000 && w>>5&31 == 31 { // stp, pre-index
		return signed(w, 15, 7) * 8, w&31 == 30, false
	}
	if w&0x3FC00000 == 0x28C00000 && w>>5&31 == 31 { // ldp, post-index
		return signed(w, 15, 7) * 8, false, w&31 == 30
	}
	return 0, false, false
}

type frameState struct {
	low int64
	lr  int64 // how far the stack pointer is above the link register's place, -1 where it is in the register
}

// flow visits all instructions that are reached from an address, inside of code up to end, with what is on the stack there.
func flow(t *testing.T, code []byte, base, from, end uint64, visit func(pc uint64, s frameState)) {
	t.Helper()
	seen := map[uint64]frameState{}
	type todo struct {
		pc uint64
		s  frameState
	}
	work := []todo{{from, frameState{lr: -1}}}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		if k.pc < from || k.pc >= end {
			continue
		}
		if was, ok := seen[k.pc]; ok {
			if was != k.s {
				t.Fatalf("%#x is reached with %+v and %+v", k.pc, was, k.s)
			}
			continue
		}
		seen[k.pc] = k.s
		visit(k.pc, k.s)
		w := binary.LittleEndian.Uint32(code[k.pc-base:])
		by, saved, back := stackMove(w)
		s := k.s
		s.low -= by
		switch {
		case saved:
			s.lr = s.low
		case back:
			s.lr = -1
		}
		switch kindOf(w) {
		case jump:
			work = append(work, todo{targetOf(w, k.pc), s})
			continue
		case condJump:
			work = append(work, todo{targetOf(w, k.pc), s})
		case ret, indirectJump:
			if k.s.low != 0 {
				t.Errorf("left at %#x with %d bytes on the stack", k.pc, k.s.low)
			}
			continue
		}
		work = append(work, todo{k.pc + 4, s})
	}
}

// framesOf makes stubs of a few instructions, and reads their unwind information.
func framesOf(t *testing.T, cfg stub.Config, shared bool) (code []byte, table *cfi.Table, stubs map[uint64]uint64, made int) {
	t.Helper()
	cfg.Gate, cfg.Ring, cfg.TIDOffset = testArena+1<<17, testRing, glibcTID
	c := &coder{Asm: arm64.NewAsm(testArena, nil), cfg: &cfg, routines: &routines{}, base: testArena}
	c.beginUnwind()
	c.emitThreadID()
	c.routines.slow, c.routines.seccomp, c.routines.names, c.routines.loader = c.emitSlow(), c.emitSeccomp(), 0, c.emitLoader()
	if cfg.Follow {
		c.routines.follow, c.routines.exec = c.emitFollow(), c.emitExec()
	}
	c.routines.names = c.emitNames()
	if shared {
		c.emitShared()
	}
	c.emitLower([]int32{0, 16, 32, 48})
	c.Resolve()
	begin := c.PC()
	stubs = map[uint64]uint64{}
	const text = testArena + 1<<20
	for i, w := range []uint32{0xD65F03C0, 0xD61F0200, 0x8B020020, 0x54000040, 0x14000004, 0x58000043, 0x9C000043} {
		for _, m := range []moved{{entry: true}, {entry: true, alive: true, spDelta: 32}, {exit: true}, {entry: true, exit: true, alive: true}} {
			if m.exit && (kindOf(w) == plain || kindOf(w) == literal) {
				continue
			}
			m.word, m.addr = w, text+64*uint64(i)+16*uint64(len(stubs)%4)
			c.alignStub()
			stubs[c.PC()] = m.addr
			e := &emitter{coder: c, fn: &stub.Probe{Function: &plan.Function{}, ID: uint32(len(stubs))}}
			if err := e.site(m); err != nil {
				t.Fatal(err)
			}
			c.flush()
			c.Resolve()
			c.settle(nil, c.first())
		}
	}
	if err := c.endUnwind(begin); err != nil {
		t.Fatal(err)
	}
	code, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	c.placeUnwind(code)
	header, err := cfi.ParseEHFrameHdr(code[:stub.UnwindHead], testArena, cfi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if table, err = cfi.ParseEHFrame(code[header.EHFramePtr-testArena:], header.EHFramePtr, cfi.Options{}); err == nil {
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
		if header.Entries[i].Start != f.Start {
			t.Errorf("FDE %d begins at %#x, the header says %#x", i, f.Start, header.Entries[i].Start)
		}
	}
	return code, table, stubs, len(c.unwind.ranges)
}

// At each instruction of a stub an unwinder finds the instruction that it stands for, the stack pointer and the link register that are the
// function's there.
func TestUnwindersFindTheInstructionsThatStubsStandFor(t *testing.T) {
	for _, cfg := range []stub.Config{{HWCap: hwcapAtomics}, {}, {HWCap: hwcapAtomics, Lazy: true}, {Min: true, NoTLS: true}, {Min: true, HWCap: hwcapAtomics, Follow: true}} {
		for _, shared := range []bool{false, true} {
			code, table, stubs, _ := framesOf(t, cfg, shared)
			visited, saved := 0, 0
			for at, stand := range stubs {
				flow(t, code, testArena, at, testArena+uint64(len(code)), func(pc uint64, s frameState) {
					visited++
					const stack, link = 0x7FFE_0000, 0x4444
					f, ok := table.Find(pc)
					if !ok {
						t.Fatalf("nothing is said of %#x", pc)
					}
					row, err := f.RowAt(pc)
					if err != nil {
						t.Fatal(err)
					}
					in := &cfi.EvalInput{
						CFA: uint64(stack-s.low) + 1, HasCFA: true,
						Reg: func(reg uint32) (uint64, bool) {
							switch reg {
							case arm64.SP:
								return uint64(stack - s.low), true
							case arm64.LR:
								return link, true
							}
							return 0, false
						},
						Read: func(addr uint64, b []byte) error {
							if s.lr < 0 || addr != uint64(stack-s.lr) {
								return errors.New("not where the link register is")
							}
							binary.LittleEndian.PutUint64(b, 0x5555)
							return nil
						},
					}
					value := func(reg uint32) uint64 {
						rule := row.Reg(reg)
						if rule.Kind != cfi.ValExpression {
							t.Fatalf("%#x: register %d is %v", pc, reg, rule)
						}
						var eval cfi.Evaluator
						v, err := eval.Eval(rule.Expr, in)
						if err != nil {
							t.Fatalf("%#x: register %d: %v", pc, reg, err)
						}
						return v
					}
					if !f.CIE.SignalFrame || row.CFA.Reg != arm64.SP || row.CFA.Offset != 1 {
						t.Fatalf("%#x: CFA %v", pc, row.CFA)
					}
					if got := value(arm64.PC); got != stand && got != stand+4 {
						t.Errorf("%#x in the stub at %#x stands for %#x, not %#x", pc, at, got, stand)
					}
					if got := value(arm64.SP); got != stack {
						t.Errorf("%#x: stack pointer %#x", pc, got)
					}
					if s.lr >= 0 {
						saved++
						if got := value(arm64.LR); got != 0x5555 {
							t.Errorf("%#x: link register %#x", pc, got)
						}
					} else if rule := row.Reg(arm64.LR); rule.Kind == cfi.ValExpression {
						t.Errorf("%#x: link register %v", pc, rule)
					}
				})
			}
			if visited < 150 || saved < 20 {
				t.Errorf("%d instructions, at %d of them the link register is on the stack", visited, saved)
			}
		}
	}
}

// In the routines the CFA follows every move of the stack pointer, along every jump.
func TestTheStackIsDescribedAllThroughTheRoutines(t *testing.T) {
	for _, cfg := range []stub.Config{{HWCap: hwcapAtomics | hwcapSVE, HWCap2: hwcap2SME, Lossless: true}, {Lazy: true}, {Overwrite: true, HWCap: hwcapAtomics, Lazy: true}, {Min: true, NoTLS: true, Follow: true, HWCap: hwcapSVE}} {
		code, table, _, routines := framesOf(t, cfg, true)
		fdes := table.FDEs()
		for i := range routines {
			f := &fdes[i]
			framed := 0
			flow(t, code, testArena, f.Start, f.End, func(pc uint64, s frameState) {
				row, err := f.RowAt(pc)
				if err != nil {
					t.Fatal(err)
				}
				lr := row.Reg(arm64.LR)
				switch {
				case row.CFA.Reg == uint16(rFrame) && row.CFA.Offset == frameSize && s.low >= frameSize:
					framed++
					if lr.Offset != frameLR-frameSize {
						t.Errorf("%#x: link register %v", pc, lr)
					}
				case row.CFA.Reg != arm64.SP || row.CFA.Offset != s.low:
					t.Errorf("%#x: CFA %v, with %d bytes on the stack", pc, row.CFA, s.low)
				case s.lr >= 0 && lr.Offset != -s.lr:
					t.Errorf("%#x: link register %v, want it at %d", pc, lr, -s.lr)
				}
			})
			if i == 0 && framed < 30 {
				t.Errorf("%d instructions with a frame", framed)
			}
		}
	}
}
