package golang

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// Go's compiler makes no notes of markers (SDT). What stands in their place are the functions of package mark, which do nothing: a marker is a
// function's entry, where its arguments are in the registers of Go's calling convention (cmd/compile/abi-internal.md). They are found by their
// names in pclntab, which stripping leaves.

// markPackage is what the names of their functions begin with.
const markPackage = "github.com/callreel/callreel/mark."

// markFunctions are what the functions are as markers: the name that one of callreel.h would have, and the arguments, see letters.
var markFunctions = map[string]struct{ name, arguments string }{
	"Begin":         {"begin_s", "s"},
	"BeginInt":      {"begin_s", "si"},
	"BeginText":     {"begin_s_z2", "ss"},
	"End":           {"end", ""},
	"EndOf":         {"end_s", "s"},
	"AsyncBegin":    {"async_begin_s", "su"},
	"AsyncStep":     {"async_step_s", "su"},
	"AsyncEnd":      {"async_end_s", "su"},
	"FlowOut":       {"flow_out_s", "su"},
	"FlowIn":        {"flow_in_s", "su"},
	"Counter":       {"counter_s", "si"},
	"CounterFloat":  {"counterf_s", "sf"},
	"Instant":       {"instant_s", "s"},
	"InstantInt":    {"instant_s", "si"},
	"InstantText":   {"instant_s_z2", "ss"},
	"GoroutineName": {"thread_name", "s"},
}

// markRegisters are those of a processor's calling convention: of integers, in order, of which a string takes two, and of the first float; prefix is
// what notes write before a register.
type markRegisters struct {
	integers      [5]string
	float, prefix string
}

// markRegistersOf are those of processors whose Go programs can have markers.
var markRegistersOf = map[object.Arch]*markRegisters{
	object.AMD64: {[...]string{"rax", "rbx", "rcx", "rdi", "rsi"}, "xmm0", "%"},
	object.ARM64: {[...]string{"x0", "x1", "x2", "x3", "x4"}, "d0", ""},
}

// MarkNotes returns the functions of package mark that a program has, each as if it were the note of a marker; none for what is no Go program
// for x86-64 or arm64. What can't be read has none.
func MarkNotes(o *object.Image) []sdt.Note {
	registers := markRegistersOf[o.Arch]
	if o.Format != object.ELF || o.Class != object.Class64 || registers == nil || pclntab.Section(o) == nil {
		return nil
	}
	t, err := pclntab.Open(o)
	if err != nil {
		return nil
	}
	var notes []sdt.Note
	semaphore := uint64(0)
	seen := map[string]bool{} // a made-up table may say anything any number of times
	for k := range t.Len() {
		f, err := t.Func(k)
		if err != nil {
			break
		}
		rest, is := bytes.CutPrefix(t.Name(f.Name), []byte(markPackage))
		name := string(rest)
		if !is || seen[name] {
			continue
		}
		if name == "Recording" {
			semaphore = semaphoreIn(o, f.Start, f.End)
			seen[name] = true
			continue
		}
		if m, is := markFunctions[name]; is {
			seen[name] = true
			notes = append(notes, registers.note(m.name, m.arguments, f.Start))
		}
	}
	for i := range notes {
		notes[i].Semaphore = semaphore
	}
	return notes
}

// note makes the note of a function at an address. The letters are s for a string, i for a signed number and u for another, f for a float.
func (r *markRegisters) note(name, letters string, at uint64) sdt.Note {
	n := sdt.Note{Provider: sdt.Provider, Name: name, Addr: at}
	ints := 0
	register := func() string {
		ints++
		return r.integers[ints-1]
	}
	for _, l := range letters {
		a := sdt.Argument{Size: 8, Name: "value"}
		a.Place = sdt.Register
		switch l {
		case 's':
			if a.Name = "text"; ints == 0 {
				a.Name = "name"
			}
			a.Reg = register()
			a.Length = register()
			a.Text = "8@" + r.prefix + a.Reg + "[" + r.prefix + a.Length + "]"
		case 'i':
			a.Reg, a.Signed = register(), true
			a.Text = "-8@" + r.prefix + a.Reg
		case 'u':
			a.Reg, a.Name = register(), "id"
			a.Text = "8@" + r.prefix + a.Reg
		case 'f':
			a.Reg, a.Float = r.float, true
			a.Text = "8f@" + r.prefix + a.Reg
		}
		if n.Text != "" {
			n.Text += " "
		}
		n.Text += a.Text
		n.Arguments = append(n.Arguments, a)
	}
	return n
}

// semaphoreIn is the address of the first number of 16 bits in the program's own data that the code of mark.Recording looks at, 0 if it looks at
// none.
func semaphoreIn(o *object.Image, start, end uint64) uint64 {
	const most = 64 // bytes: it has 12
	code, err := o.ReadAddr(start, min(most, end-min(start, end)))
	if err != nil {
		return 0
	}
	if o.Arch == object.ARM64 {
		return semaphoreARM64(o, code, start)
	}
	for off := 0; off < len(code); {
		in, err := amd64.Decode(code[off:])
		if err != nil {
			return 0
		}
		at := start + uint64(off)
		off += int(in.Len)
		if to, ok := in.MemTarget(at); ok && in.RIPRelative && isOwnNumber(o, to) {
			return to
		}
	}
	return 0
}

// semaphoreARM64 is semaphoreIn for arm64, where the address is computed by two instructions: the page, and the place there.
func semaphoreARM64(o *object.Image, code []byte, start uint64) uint64 {
	var at [32]uint64 // addresses in registers
	for off := 0; off+arm64.Len <= len(code); off += arm64.Len {
		var in arm64.Inst
		if arm64.DecodeWord(&in, binary.LittleEndian.Uint32(code[off:])) != nil {
			return 0
		}
		switch {
		case in.Class == arm64.Address:
			at[in.Rd()&31], _ = in.MemTarget(start + uint64(off))
		case in.Class == arm64.AddSubImm && in.Word&0xFFC00000 == 0x91000000: // add, of 12 bits
			at[in.Rd()&31] = at[in.Rn()&31] + uint64(in.Word>>10&0xFFF)
		case in.Class == arm64.Load && in.Size == 2 && !in.Index && !in.Writeback:
			if to := at[in.Base&31] + uint64(int64(in.Disp)); isOwnNumber(o, to) {
				return to
			}
		}
	}
	return 0
}

// isOwnNumber says whether at an address there may be a number of 16 bits of the program's own data.
func isOwnNumber(o *object.Image, addr uint64) bool {
	return addr%2 == 0 && slices.ContainsFunc(o.Segments(), func(s object.Segment) bool {
		return s.Type == object.SegmentLoad && s.Perm&object.PermW != 0 && s.Perm&object.PermX == 0 && addr >= s.Addr && addr-s.Addr+2 <= s.FileSize
	})
}

// Constants is the range of a program's read-only data, in which its constant strings are; empty if there is none.
func Constants(o *object.Image) object.Range {
	s := o.Section(".rodata")
	if s == nil || s.Addr == 0 || s.Size > 1<<31-1 {
		return object.Range{}
	}
	return object.Range{Name: s.Name, Start: s.Addr, End: s.Addr + s.Size}
}
