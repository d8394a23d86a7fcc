package pclntab

import "github.com/callreel/callreel/internal/leb128"

// each calls visit for the ranges of a function that a table of values by PC has, in the order of addresses (runtime.step).
// Nothing is told of what fills the function up.
func (t *Table) each(f Func, table uint32, visit func(start, end uint64, value int32) bool) {
	if uint64(table) >= uint64(len(t.values)) {
		return
	}
	b, at, pc, value := t.values, int(table), f.Start, int32(-1)
	for first := true; pc < f.End; first = false {
		delta, n := number(b, at)
		if n < 0 || delta == 0 && !first {
			return
		}
		value += int32(delta>>1) ^ -int32(delta&1)
		length, n := number(b, n)
		if n < 0 || length == 0 {
			return
		}
		at = n
		start := pc
		pc += uint64(length) * t.step
		if !visit(start, min(pc, f.End), value) {
			return
		}
	}
}

// number reads a number of 32 bits at b[at] and returns where it ends, -1 when it does not end (runtime.readvarint).
func number(b []byte, at int) (uint32, int) {
	v, end := leb128.Uint(b, at)
	return uint32(v), end
}

// at returns the value of a table at an address.
func (t *Table) at(f Func, table uint32, pc uint64) (value int32, ok bool) {
	t.each(f, table, func(start, end uint64, v int32) bool {
		if pc >= start && pc < end {
			value, ok = v, true
		}
		return pc >= end
	})
	return value, ok
}

// maxDelta bounds what is believed of a frame's size: goroutines' stacks can't be larger by default (runtime.maxstacksize).
const maxDelta = 1 << 30

// SPDelta returns how many bytes lie between the stack pointer at a link address and its value at the function's entry: behind
// the return address, where the caller has pushed one, the frame begins there. ok is false where the table doesn't tell.
func (t *Table) SPDelta(f Func, pc uint64) (delta int32, ok bool) {
	if delta, ok = t.at(f, t.field(f, offPCSP), pc); !ok || delta < 0 || delta > maxDelta {
		return 0, false
	}
	return delta, true
}

// CodeEnd returns where what fills a function up begins, End if nothing does.
func (t *Table) CodeEnd(f Func) uint64 {
	last := f.Start
	t.each(f, t.field(f, offPCLine), func(_, end uint64, _ int32) bool {
		last = end
		return true
	})
	if last == f.Start {
		return f.End
	}
	return last
}

// A Line is the source line of the code from Start to End, both link addresses: of the innermost inlined call there.
type Line struct {
	Start, End uint64
	File       uint32 // see Table.File; NoFile for none
	Line       uint32 // 0 for none
}

// NoFile is the number of no file.
const NoFile = ^uint32(0)

// Lines calls visit with the lines of a function, in the order of addresses, each longer than nothing.
func (t *Table) Lines(f Func, visit func(Line) bool) {
	var files []Line
	t.each(f, t.field(f, offPCFile), func(start, end uint64, v int32) bool {
		files = append(files, Line{start, end, t.fileOf(f, v), 0})
		return true
	})
	k := 0
	t.each(f, t.field(f, offPCLine), func(start, end uint64, v int32) bool {
		for start < end {
			for k < len(files) && files[k].End <= start {
				k++
			}
			piece := Line{start, end, NoFile, uint32(max(v, 0))}
			if k < len(files) {
				piece.File, piece.End = files[k].File, min(end, files[k].End)
			}
			if !visit(piece) {
				return false
			}
			start = piece.End
		}
		return true
	})
}

// LineAt returns the source line at a link address.
func (t *Table) LineAt(f Func, pc uint64) (file, line uint32) {
	file = NoFile
	if v, ok := t.at(f, t.field(f, offPCFile), pc); ok {
		file = t.fileOf(f, v)
	}
	if v, ok := t.at(f, t.field(f, offPCLine), pc); ok && v > 0 {
		line = uint32(v)
	}
	return file, line
}

// fileOf makes a number in a function's unit one in the table of all files.
func (t *Table) fileOf(f Func, number int32) uint32 {
	at := (uint64(t.field(f, offUnit)) + uint64(uint32(number))) * 4
	if number < 0 || at+4 > uint64(len(t.units)) {
		return NoFile
	}
	return t.order.Uint32(t.units[at:])
}

// File returns the path of a file, as the compiler was given it; empty for NoFile.
// The bytes are the image's.
func (t *Table) File(number uint32) []byte { return text(t.files, number) }
