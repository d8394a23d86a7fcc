package arm64

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A movedCase is an instruction as the program has it, and what comes before it.
type movedCase struct {
	name string
	// before runs first: x9 is the link register's own by then, target another place in the function, and data 64 bytes.
	before func(c *coder, target, data arm64.Label)
	inst   func(c *coder, target, data arm64.Label)
	exit   bool
	branch bool // it stays where it is, and leads elsewhere
	events int
	keeps  bool // x16, which before sets
}

func movedCases() []movedCase {
	word := func(w uint32) func(c *coder, _, _ arm64.Label) { return func(c *coder, _, _ arm64.Label) { c.Word(w) } }
	var list []movedCase
	add := func(name string, inst func(c *coder, target, data arm64.Label)) {
		list = append(list, movedCase{name: name, inst: inst, events: 1})
	}
	add("add", func(c *coder, _, _ arm64.Label) { c.Add(x0, x1, x2) })
	add("stp, stack moved", func(c *coder, _, _ arm64.Label) { c.Store(8, x1, arm64.At(sp, -8)) })
	add("adr", func(c *coder, _, data arm64.Label) { c.Adr(x3, data) })
	add("adrp", word(0x90000003))
	add("adrp, far", word(0xB0000003|0x7FFF0<<5))
	add("adrp, far back", word(0x90000003|0x400000<<1))
	add("adr of nothing", word(0x10000000|31))
	add("ldr x", func(c *coder, _, data arm64.Label) { c.LoadLiteralAt(x4, data) })
	add("ldr w", func(c *coder, _, data arm64.Label) { c.LoadLiteralWAt(x4, data) })
	literal := func(w uint32) func(c *coder, _, data arm64.Label) {
		return func(c *coder, _, data arm64.Label) {
			c.Word(w | 6<<5) // the data are behind six instructions
		}
	}
	add("ldrsw", literal(0x98000000|4))
	add("ldr xzr", literal(0x58000000|31))
	add("ldr s", literal(0x1C000000|4))
	add("ldr d", literal(0x5C000000|5))
	add("ldr q", literal(0x9C000000|31))
	add("prfm", literal(0xD8000000))
	list = append(list, movedCase{name: "ldr q, x16 alive", before: func(c *coder, _, _ arm64.Label) { c.Movz(x16, 5, 0) },
		inst: func(c *coder, _, _ arm64.Label) { c.Word(0x9C000000 | 7<<5 | 4) }, events: 1, keeps: true})
	for cond := range 14 {
		for _, exit := range []bool{false, true} {
			list = append(list, movedCase{name: fmt.Sprint("b.cond ", cond, exit), exit: exit, inst: func(c *coder, target, _ arm64.Label) { c.BCond(arm64.Cond(cond), target) }})
		}
	}
	for name, inst := range map[string]func(c *coder, target, _ arm64.Label){
		"cbz":  func(c *coder, target, _ arm64.Label) { c.Cbz(x3, target) },
		"cbnz": func(c *coder, target, _ arm64.Label) { c.CbnzW(x3, target) },
		"tbz":  func(c *coder, target, _ arm64.Label) { c.Tbz(x3, 3, target) },
		"tbnz": func(c *coder, target, _ arm64.Label) { c.Tbnz(x3, 44, target) },
	} {
		zero := func(c *coder, _, _ arm64.Label) { c.Movz(x3, 0, 0) }
		ones := func(c *coder, _, _ arm64.Label) { c.Movn(x3, 0, 0) }
		for _, exit := range []bool{false, true} {
			list = append(list, movedCase{name: name + ", zero", before: zero, inst: inst, exit: exit},
				movedCase{name: name + ", ones", before: ones, inst: inst, exit: exit}, movedCase{name: name, inst: inst, exit: exit})
		}
	}
	load := func(r int) func(c *coder, target, _ arm64.Label) {
		return func(c *coder, target, _ arm64.Label) {
			c.Adr(isa.Reg(r), target)
			if r == 16 {
				c.Movz(x17, 77, 0)
			}
		}
	}
	list = append(list,
		movedCase{name: "b", inst: func(c *coder, target, _ arm64.Label) { c.B(target) }, branch: true, events: 1},
		movedCase{name: "b that leaves", inst: func(c *coder, target, _ arm64.Label) { c.B(target) }, branch: true, exit: true, events: 2},
		movedCase{name: "bl", inst: func(c *coder, target, _ arm64.Label) { c.Bl(target) }, events: 1},
		movedCase{name: "blr", before: load(5), inst: word(0xD63F0000 | 5<<5), events: 1},
		movedCase{name: "blr lr", before: load(30), inst: word(0xD63F0000 | 30<<5), events: 1},
		movedCase{name: "blraaz", before: func(c *coder, target, _ arm64.Label) { c.Adr(x5, target); c.Word(0xDAC123E5) }, inst: word(0xD63F081F | 5<<5), events: 1},
		movedCase{name: "blraa", before: func(c *coder, target, _ arm64.Label) { c.Adr(x5, target); c.Word(0xDAC100C5) }, inst: word(0xD73F0800 | 5<<5 | 6), events: 1},
		movedCase{name: "br", before: load(5), inst: word(0xD61F0000 | 5<<5), events: 1},
		movedCase{name: "br that leaves", before: load(5), inst: word(0xD61F0000 | 5<<5), exit: true, events: 2},
		movedCase{name: "br x16 that leaves", before: load(16), inst: word(0xD61F0000 | 16<<5), exit: true, events: 2},
		movedCase{name: "braa", before: func(c *coder, target, _ arm64.Label) { c.Adr(x5, target); c.Word(0xDAC100C5) }, inst: word(0xD71F0800 | 5<<5 | 6), exit: true, events: 2},
		movedCase{name: "ret", inst: word(0xD65F03C0), exit: true, events: 2},
		movedCase{name: "ret x9", inst: word(0xD65F0000 | 9<<5), exit: true, events: 2},
		movedCase{name: "retaa", before: func(c *coder, _, _ arm64.Label) { c.Hint(arm64.HintPACIASP) }, inst: word(0xD65F0BFF), exit: true, events: 2},
		movedCase{name: "retab", before: func(c *coder, _, _ arm64.Label) { c.Hint(arm64.HintPACIBSP) }, inst: word(0xD65F0FFF), exit: true, events: 2},
		movedCase{name: "paciasp", inst: func(c *coder, _, _ arm64.Label) { c.Hint(arm64.HintPACIASP) }, events: 1},
		movedCase{name: "autiasp", before: func(c *coder, _, _ arm64.Label) { c.Hint(arm64.HintPACIASP) }, inst: func(c *coder, _, _ arm64.Label) { c.Hint(arm64.HintAUTIASP) }, events: 1},
		movedCase{name: "bti", inst: func(c *coder, _, _ arm64.Label) { c.Hint(arm64.HintBTIC) }, events: 1},
	)
	return list
}

// Each instruction does in its stub what it does in the program, and events are written besides.
func TestMovedInstructionsDoTheSame(t *testing.T) {
	list := movedCases()
	s := stubSetup{machine: smeMachine, ids: len(list) + 1, chunks: 256}
	s.code = func(t testing.TB, c *coder) (funcs []uint64) {
		for i, k := range list {
			target, data, inst := c.NewLabel(), c.NewLabel(), c.NewLabel()
			begin := func() {
				funcs = append(funcs, c.PC())
				c.Mov(x9, lr)
				if k.before != nil {
					k.before(c, target, data)
				}
			}
			c.Align(16)
			begin()
			c.B(inst)
			c.Place(inst)
			at := c.PC()
			k.inst(c, target, data)
			c.Movz(x0, 1, 0)
			if k.keeps {
				c.Mov(x0, x16)
			}
			c.Ret(x9)
			c.Place(target)
			c.Movz(x1, 2, 0)
			if kindOfCase(k) == call_ || kindOfCase(k) == indirectCall {
				c.Ret(lr)
			} else {
				c.Ret(x9)
			}
			c.Nop()
			c.Place(data)
			for v := range uint64(8) {
				c.Data64(0x8123_4567_F9AB_CDE0 + v)
			}
			begin()
			c.Resolve()
			word := binary.LittleEndian.Uint32(c.Since(int(at - c.Base())))
			e := &emitter{coder: c, fn: &stub.Probe{Function: &plan.Function{}, ID: uint32(i + 1)}}
			if err := e.site(moved{addr: at, word: word, entry: true, exit: k.exit, leadElsewhere: k.branch, alive: k.before != nil}); err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			c.flush()
			c.Resolve()
		}
		return funcs
	}
	d := startDriver(t, s)
	made := uint64(0)
	for i, k := range list {
		for range 20 {
			d.send("same %d %d", 2*i, 2*i+1)
			if a := d.answer(); a != "ok" {
				t.Fatalf("%s: %s", k.name, a)
			}
		}
		d.round()
		n := d.drainer.Totals().Events - made
		made += n
		if k.events != 0 && n != uint64(20*k.events) {
			t.Errorf("%s: %d events of 20 calls, want %d each", k.name, n, k.events)
		}
		if k.events == 0 && (n < 20 || n > 40 || !k.exit && n != 20) {
			t.Errorf("%s: %d events of 20 calls", k.name, n)
		}
	}
}

// kindOfCase is the kind of a case's instruction, without its distance.
func kindOfCase(k movedCase) kind {
	c := &coder{Asm: arm64.NewAsm(0x10000, nil)}
	target, data := c.NewLabel(), c.NewLabel()
	k.inst(c, target, data)
	return kindOf(binary.LittleEndian.Uint32(c.Since(0)))
}
