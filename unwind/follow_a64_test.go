package unwind_test

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/unwind"
)

const (
	x0, x9, x16, x17, x19, fp, lr, sp = isa.Reg(0), isa.Reg(9), isa.Reg(16), isa.Reg(17), isa.Reg(19), isa.Reg(29), isa.Reg(30), isa.Reg(31)

	retaa, paciasp, autiasp = 0xD65F0BFF, 25, 29
)

// a64Code is a function without CFI, stopped somewhere, and two that have called each other and it.
type a64Code struct {
	*arm64.Asm
	stop    uint64
	returns []uint64 // return addresses, of the innermost caller first
	s       unwind.Snapshot
	words   []uint64
}

// a64SP is how many bytes above the stack's first the stack pointer is when the function is entered.
const a64SP = 256

func newA64(t *testing.T, emit func(c *a64Code)) *a64Code {
	t.Helper()
	c := &a64Code{words: make([]uint64, 64)}
	c.Asm = arm64.NewAsm(fuzzCode, make([]byte, 4096))
	for range 2 { // callers, whose frames are 32 bytes long
		c.Bl(c.here())
		c.returns = append(c.returns, c.PC())
		c.AddImm(x0, x0, 1)
		c.LoadPair(fp, lr, arm64.Post(sp, 32))
		c.Ret(lr)
	}
	c.words[a64SP/8], c.words[a64SP/8+1] = fuzzStack+a64SP+32, c.returns[1]
	c.s.Regs.Set(int(sp), fuzzStack+a64SP)
	c.s.Regs.Set(int(fp), fuzzStack+a64SP)
	c.s.Regs.Set(int(lr), c.returns[0])
	emit(c)
	code, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	p := &fuzzProcess{code: slices.Clone(code), stack: stackOf(c.words...)}
	c.s.Memory, c.s.Addr, c.s.Stack, c.s.Frozen = p, fuzzStack, p.stack, true
	c.s.Regs.PC = c.stop
	return c
}

// here is a place that a call may be to.
func (c *a64Code) here() arm64.Label {
	l := c.NewLabel()
	c.Place(l)
	return l
}

// stopHere is where the function is stopped.
func (c *a64Code) stopHere() { c.stop = c.PC() }

// frame has the function's frame of n bytes made: frame pointer and link register are saved at its beginning.
func (c *a64Code) frame(n uint64, own bool) {
	at := fuzzStack + a64SP - n
	c.words[(at-fuzzStack)/8], c.words[(at-fuzzStack)/8+1] = fuzzStack+a64SP, c.returns[0]
	c.s.Regs.Set(int(sp), at)
	if own {
		c.s.Regs.Set(int(fp), at)
	}
}

// called has the link register overwritten.
func (c *a64Code) called() { c.s.Regs.Set(int(lr), c.PC()) }

func (c *a64Code) call() { c.Bl(c.here()) }

func TestA64CodeWithoutCFIIsFollowedToItsReturn(t *testing.T) {
	for name, emit := range map[string]func(c *a64Code){
		"a leaf": func(c *a64Code) {
			over := c.NewLabel()
			c.stopHere()
			c.Cbz(x0, over)
			c.Store(8, x0, arm64.At(sp, -16))
			c.Place(over)
			c.Ret(lr)
		},
		"a leaf in a loop": func(c *a64Code) {
			c.stopHere()
			c.SubsImm(x0, x0, 1)
			c.BCondTo(arm64.CondNE, c.stop)
			c.Ret(lr)
		},
		"before its frame is made": func(c *a64Code) {
			c.stopHere()
			c.StorePair(fp, lr, arm64.Pre(sp, -32))
			c.MovSP(fp, sp)
			c.Store(8, x19, arm64.At(sp, 16))
			c.call()
			c.Load(8, x19, arm64.At(sp, 16))
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.Ret(lr)
		},
		"between the frame and its pointer": func(c *a64Code) {
			c.StorePair(fp, lr, arm64.Pre(sp, -32))
			c.stopHere()
			c.frame(32, false)
			c.MovSP(fp, sp)
			c.call()
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.Ret(lr)
		},
		"behind a call": func(c *a64Code) {
			c.StorePair(fp, lr, arm64.Pre(sp, -32))
			c.MovSP(fp, sp)
			c.call()
			c.called()
			c.stopHere()
			c.frame(32, true)
			c.AddImm(x0, x0, 1)
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.Ret(lr)
		},
		"behind its frame": func(c *a64Code) {
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.stopHere()
			c.Ret(lr)
		},
		"a frame without a pointer": func(c *a64Code) {
			c.SubImm(sp, sp, 48)
			c.StorePair(fp, lr, arm64.At(sp, 0))
			c.call()
			c.called()
			c.stopHere()
			c.frame(48, false)
			c.s.Regs.Set(int(fp), 1)
			c.call()
			c.LoadPair(fp, lr, arm64.At(sp, 0))
			c.AddImm(sp, sp, 48)
			c.Ret(lr)
		},
		"a frame of a size that isn't known": func(c *a64Code) {
			c.stopHere()
			c.frame(32, true)
			c.s.Regs.Set(int(sp), fuzzStack+64)
			c.called()
			c.Sub(x9, x9, x0)
			c.MovSP(sp, x9)
			c.call()
			c.MovSP(sp, fp)
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.Ret(lr)
		},
		"a frame that a load of a word takes off": func(c *a64Code) {
			c.stopHere()
			c.s.Regs.Set(int(sp), fuzzStack+a64SP-16)
			c.Load(4, x0, arm64.Post(sp, 16))
			c.Ret(lr)
		},
		"a return address in another register": func(c *a64Code) {
			c.stopHere()
			c.Mov(x9, lr)
			c.MovImm(lr, 5)
			c.Ret(x9)
		},
		"a procedure linkage table": func(c *a64Code) {
			c.stopHere()
			c.AdrpTo(x16, fuzzCode)
			c.Load(8, x17, arm64.At(x16, 16))
			c.AddImm(x16, x16, 16)
			c.Br(x17)
		},
		"a call in the last place": func(c *a64Code) {
			other := c.NewLabel()
			c.StorePair(fp, lr, arm64.Pre(sp, -32))
			c.stopHere()
			c.frame(32, true)
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.B(other)
			c.Brk(1)
			c.Place(other)
			c.Ret(lr)
		},
		"signed": func(c *a64Code) {
			c.stopHere()
			c.Hint(paciasp)
			c.StorePair(fp, lr, arm64.Pre(sp, -32))
			c.call()
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.Hint(autiasp)
			c.Ret(lr)
		},
		"signed, and authenticated by the return": func(c *a64Code) {
			c.stopHere()
			c.frame(32, true)
			c.words[(a64SP-32)/8+1] |= 0x2a << 48
			c.called()
			c.LoadPair(fp, lr, arm64.Post(sp, 32))
			c.Word(retaa)
		},
		"a way out behind one that cannot be followed": func(c *a64Code) {
			out := c.NewLabel()
			c.stopHere()
			c.Cbz(x0, out)
			c.Br(x9)
			c.Place(out)
			c.Ret(lr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newA64(t, emit)
			w := unwind.NewWalker(unwind.ARM64, c.s.Memory.(*fuzzProcess).images(), unwind.Options{})
			for range 2 {
				frames, end := w.Walk(&c.s, nil)
				var pcs, sps []uint64
				for _, f := range frames {
					pcs, sps = append(pcs, f.PC), append(sps, f.SP)
				}
				stopped, _ := c.s.Regs.Get(int(sp))
				if want := []uint64{c.stop, c.returns[0], c.returns[1]}; !slices.Equal(pcs, want) || !end.Complete() {
					t.Errorf("frames at %#x and %v, want %#x", pcs, end, want)
				}
				if want := []uint64{stopped, fuzzStack + a64SP, fuzzStack + a64SP + 32}; !slices.Equal(sps, want) {
					t.Errorf("stack pointers %#x, want %#x", sps, want)
				}
			}
		})
	}
}

// What cannot be followed is walked by its frame record, as before.
func TestA64CodeThatCannotBeFollowedIsWalkedByItsFrameRecord(t *testing.T) {
	c := newA64(t, func(c *a64Code) {
		c.stopHere()
		c.frame(32, true)
		c.called()
		c.Br(x9)
	})
	w := unwind.NewWalker(unwind.ARM64, c.s.Memory.(*fuzzProcess).images(), unwind.Options{})
	frames, end := w.Walk(&c.s, nil)
	if len(frames) != 3 || frames[1].PC != c.returns[0] || frames[1].By != unwind.ByFramePointer || !end.Complete() {
		t.Errorf("%+v, %v", frames, end)
	}
}
