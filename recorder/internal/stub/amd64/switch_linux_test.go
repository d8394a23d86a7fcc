package amd64

import (
	"encoding/binary"
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Each event of a function is found, begins in one aligned word, and is left out by a jump that leads behind it, to where an instruction
// begins; nothing else changes.
func TestEachEventCanBeSwitchedByOneExchange(t *testing.T) {
	im := realImage(t, "libc")
	fns := planImage(t, im)
	less := stub.Config{Min: true, Threads: true, Depth: true, Inside: true, Areas: 1 << 41}
	lazily := less
	lazily.Lazy = true
	for _, n := range []int{InlineLimit, len(fns)} {
		for _, cfg := range []stub.Config{{}, {Lazy: true}, less, lazily} {
			if cfg.Min && n > InlineLimit { // the same as without
				continue
			}
			cfg.Gate, cfg.Ring = testArena-amd64.PageSize, 1<<40
			selected := selectedOf(im, fns, n)
			for i := range selected {
				selected[i].Inside = cfg.Inside && i%3 == 0
			}
			code, err := compile(testArena, cfg, selected, nil)
			if err != nil {
				t.Fatal(err)
			}
			made := map[uint32]stub.Slot{}
			for _, s := range code.Slots {
				made[s.ID] = s
			}
			if cfg.Lazy && len(code.Slots) != len(selected) {
				t.Errorf("%d slots of %d functions", len(code.Slots), len(selected))
			}
			events := 0
			for i := range selected {
				list, err := code.Switches(i)
				if err != nil {
					t.Fatal(err)
				}
				entries := 0
				for k := range list {
					s := &list[k]
					entries += btoi(!s.Exit)
					word := binary.LittleEndian.Uint64(code.Bytes[s.At:])
					if s.At%8 != 0 || !s.IsOn(word) || s.In(word, true, false) != word {
						t.Fatalf("%s: at %#x is %#x, on %#x or %#x", selected[i].Name, s.At, word, s.On, s.Unmade)
					}
					if slot := made[selected[i].ID]; cfg.Lazy && !s.Exit && slot.At == s.At && s.In(word, true, true) != slot.Word {
						t.Fatalf("%s: made it is %#x, not %#x", selected[i].Name, slot.Word, s.In(word, true, true))
					}
					off := s.In(word, false, true)
					if s.IsOn(off) || s.In(off, true, false) != word || (off^word)&^s.Mask != 0 {
						t.Fatalf("%s: off it is %#x, on %#x", selected[i].Name, off, word)
					}
					at := s.At
					for mask := s.Mask; mask&0xFF == 0; mask >>= 8 {
						at++
					}
					var b [8]byte
					binary.LittleEndian.PutUint64(b[:], off)
					jump, err := amd64.Decode(b[at-s.At:])
					to, ok := jump.Target(uint64(at))
					if err != nil || !ok || jump.Len != switchSize || to <= uint64(at) || to > uint64(at)+1024 {
						t.Fatalf("%s: off, at %#x stands % x, %v", selected[i].Name, at, b, err)
					}
					// From the event's beginning on instructions lead to there.
					pc := uint64(at)
					if s.Unmade != 0 {
						pc += switchSize
					}
					for pc < to {
						in, err := amd64.Decode(code.Bytes[pc:])
						if err != nil {
							t.Fatalf("%s: at %#x: %v", selected[i].Name, pc, err)
						}
						pc += uint64(in.Len)
					}
					if pc != to {
						t.Fatalf("%s: the jump at %#x leads to %#x, into an instruction", selected[i].Name, at, to)
					}
					events++
				}
				if want := entriesOf(&selected[i]); entries != want {
					t.Fatalf("%s: %d entries, want %d", selected[i].Name, entries, want)
				}
			}
			if events < 2*len(selected) {
				t.Errorf("%d events of %d functions", events, len(selected))
			}
		}
	}
}

// entriesOf is how many of a function's sites have an entry's event.
func entriesOf(fn *stub.Probe) (n int) {
	for _, s := range fn.Sites {
		n += btoi(s.Role == plan.RoleEntry)
	}
	return n
}
