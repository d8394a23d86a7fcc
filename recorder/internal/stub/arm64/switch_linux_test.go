package arm64

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// repeated are n probes of a program's functions.
func (p *program) repeated(n int) []stub.Probe {
	list := make([]stub.Probe, n)
	for i := range list {
		list[i] = p.probes[i%len(p.probes)]
		list[i].ID = uint32(i + 1)
	}
	return list
}

// entriesOf is how many of a function's sites have an entry's event.
func entriesOf(fn *stub.Probe) (n int) {
	for _, s := range fn.Sites {
		n += btoi(s.Role == plan.RoleEntry)
	}
	return n
}

// Each event of a function is switched, and each probe made, by a change of one byte of one instruction, of a kind that may change while threads
// run; and each leads to where it should.
func TestEachEventCanBeSwitchedByOneByte(t *testing.T) {
	p := buildProgram(t, "-O2")
	const arena, room = 0x400_0000, 1 << 20
	less := stub.Config{Min: true, Threads: true, Depth: true, Inside: true, Areas: 1 << 41}
	for _, n := range []int{len(p.probes), 20 * InlineLimit} {
		for _, cfg := range []stub.Config{{}, {Follow: true}, less} {
			for _, cfg.Lazy = range []bool{false, true} {
				cfg.TIDOffset, cfg.Gate, cfg.Ring, cfg.HWCap = glibcTID, arena+room, testRing, hwcapAtomics
				fns := p.repeated(n)
				for i := range fns {
					fns[i].Inside = cfg.Inside && i%3 == 0
				}
				code, err := Generator{}.Compile(arena, cfg, fns, nil)
				if err != nil {
					t.Fatal(err)
				}
				if bound := (Generator{}).Bound(&cfg, fns); uint64(len(code.Bytes)) > bound {
					t.Errorf("%d bytes, where there were to be %d at most", len(code.Bytes), bound)
				}
				made := map[uint32]uint64{}
				for _, s := range code.Slots {
					made[s.At] = s.Word
				}
				k := switchCheck{t: t, code: code, lazy: cfg.Lazy, made: made}
				for i := range fns {
					list, err := code.Switches(i)
					if err != nil {
						t.Fatal(err)
					}
					k.entries, k.whole = 0, fns[i].Inside // others are recorded inside it from its first call on
					for s := range list {
						k.check(fns[i].Name, &list[s])
					}
					if want := entriesOf(&fns[i]); k.entries != want {
						t.Fatalf("%s: %d entries, want %d", fns[i].Name, k.entries, want)
					}
				}
				if len(made) != 0 {
					t.Errorf("%d slots are no switches", len(made))
				}
				if k.tests == 0 && n <= InlineLimit || k.calls == 0 && n > InlineLimit {
					t.Errorf("%d tests, %d calls", k.tests, k.calls)
				}
			}
		}
	}
}

// switchCheck checks switches of some code.
type switchCheck struct {
	t                     *testing.T
	code                  *stub.Code
	lazy                  bool
	made                  map[uint32]uint64 // what words of slots become, as long as no switch was there
	entries, tests, calls int
	whole                 bool // the function's code needs not be made
}

func (k *switchCheck) check(name string, s *stub.Switch) {
	t := k.t
	t.Helper()
	word := binary.LittleEndian.Uint64(k.code.Bytes[s.At:])
	if s.At%8 != 0 || !s.IsOn(word) || s.In(word, true, false) != word {
		t.Fatalf("%s: at %#x is %#x, on %#x or %#x", name, s.At, word, s.On, s.Unmade)
	}
	if (k.lazy && !k.whole) != (s.Unmade != 0) && !s.Exit {
		t.Fatalf("%s: unmade it is %#x", name, s.Unmade)
	}
	if n := bits.TrailingZeros64(s.Mask); n%8 != 0 || s.Mask>>n != 0xFF {
		t.Fatalf("%s: %#x changes", name, s.Mask)
	}
	if !s.Exit {
		k.entries++
		if k.lazy {
			if w, is := k.made[s.At]; !is || w != s.In(word, true, true) {
				t.Fatalf("%s: made it is %#x, not %#x", name, w, s.In(word, true, true))
			}
			delete(k.made, s.At)
		}
	}
	at := s.At
	if s.Mask > 0xFFFFFFFF {
		at += 4
	}
	instruction := func(on, made bool) uint32 { return uint32(s.In(word, on, made) >> (8 * (at - s.At))) }
	pc := func(off uint32) uint64 { return k.code.Base + uint64(off) }
	on, off := instruction(true, true), instruction(false, true)
	unmade := on
	if s.Unmade != 0 {
		unmade = instruction(true, false)
	}
	if s.IsOn(s.In(word, false, true)) || on == off || s.Unmade != 0 && (unmade == on || unmade == off) {
		t.Fatalf("%s: on %#x, off %#x, unmade %#x", name, on, off, unmade)
	}
	const tbz, tested = 0xB6000000, 31 << testedBit
	for _, w := range []uint32{on, off, unmade} {
		switch kindOf(w) {
		case condJump:
			if w&0xFF000000 != tbz || w&^tested != on&^tested {
				t.Fatalf("%s: on %#x, off %#x, unmade %#x", name, on, off, unmade)
			}
		case call_:
			to := at32(k.code.Bytes, targetOf(w, pc(at))-k.code.Base)
			if w == off && to != 0xD65F03C0 || w == unmade && unmade != on && kindOf(to) != jump || w == on && (kindOf(to) == jump || kindOf(to) == ret) {
				t.Fatalf("%s: %#x calls %#x", name, w, to)
			}
		default:
			t.Fatalf("%s: %#x", name, w)
		}
	}
	if kindOf(on) == condJump {
		k.tests++
	} else {
		k.calls++
	}
}

func at32(code []byte, off uint64) uint32 { return at(code, uint32(off)) }
