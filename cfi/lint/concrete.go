package lint

import (
	"encoding/binary"
	"errors"

	"github.com/callreel/callreel/cfi"
)

// trials is how often an expression is computed with other numbers. One that is right is so each time; of one that compares
// with a register that may hold anything, the chance that it looks right each time is 1 in 2^8.
const trials = 8

// trial gives numbers to what is known before an instruction, so that an expression of any kind can be computed: what
// registers held on entry may be anything.
type trial struct {
	s       *state
	pc      uint64
	seed    uint64
	unknown bool // something was asked for that is not known
}

// number makes a number out of two (Steele et al., Fast Splittable Pseudorandom Number Generators, 2014).
func (t *trial) number(kind, id uint64) uint64 {
	z := (t.seed<<32 + kind<<16 + id + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// cfa is an address that user programs' stacks can have.
func (t *trial) cfa() uint64 { return 0x7f00_0000_0000 + t.number(0, 0)&0xffff_ffff&^15 }

// place is the number of an address in the frame. What anchors stand for lies below the CFA.
func (t *trial) place(p place) uint64 {
	if p.anchor == fromCFA {
		return t.cfa() + uint64(p.off)
	}
	const apart = 1 << 20
	return t.cfa()&^63 - apart*(1+t.number(1, uint64(uint32(p.anchor)))%64) + uint64(p.off)
}

// of is the number that stands for a value.
func (t *trial) of(v value) uint64 {
	switch v.kind {
	case constant:
		return uint64(v.off)
	case onStack, anchored:
		return t.place(placeOf(v))
	case entry:
		return t.number(2, uint64(v.id))
	}
	t.unknown = true
	return t.number(3, 0)
}

func (t *trial) register(n uint32) (uint64, bool) {
	if n == t.s.p.pc {
		return t.pc, true
	}
	if r, ok := t.s.p.general(n); ok {
		return t.of(t.s.regs[r]), true
	}
	t.unknown = true
	return 0, true
}

func (t *trial) read(addr uint64, buf []byte) error {
	clear(buf)
	for k := range t.s.slots {
		if e := &t.s.slots[k]; len(buf) == 8 && t.place(e.at) == addr {
			binary.LittleEndian.PutUint64(buf, t.of(e.val))
			return nil
		}
	}
	t.unknown = true
	return nil
}

// try computes an expression that may hold an address, with the CFA on the stack or without it, and compares what it gives
// with the number of want.
func (c *comparison) try(s *state, pc uint64, rule *cfi.Rule, withCFA bool, want value) verdict {
	for seed := range uint64(trials) {
		t := trial{s: s, pc: pc, seed: seed}
		got, err := c.evaluator.Eval(rule.Expr, &cfi.EvalInput{CFA: t.cfa(), HasCFA: withCFA, AddrSize: 8, Reg: t.register, Read: t.read})
		if err == nil && rule.Kind == cfi.Expression {
			var word [8]byte
			_ = t.read(got, word[:])
			got = binary.LittleEndian.Uint64(word[:])
		}
		switch {
		case t.unknown || err != nil && !errors.Is(err, cfi.ErrExprDivision):
			return notKnown // what no unwinder can compute is found elsewhere
		case err != nil || got != t.of(want):
			return wrong
		}
	}
	return right
}
