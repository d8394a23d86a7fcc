package discover

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/callreel/callreel/isa/amd64"
)

const base = 0x401000

// find looks for functions in code at base, of which so many bytes at the beginning are known.
func find(t testing.TB, code []byte, known uint64, pointers ...uint64) []Function {
	t.Helper()
	in := &Input{Texts: []Text{{base, code}}, Pointers: func(visit func(uint64)) error {
		for _, p := range pointers {
			visit(base + p)
		}
		return nil
	}}
	if known > 0 {
		in.Known = []Range{{base, base + known}}
	}
	got, err := Find(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// filler is a function that makes a text long enough to be looked at, called from the known one at its beginning.
func filler(a *amd64.Asm) {
	for range worth {
		a.Mov(amd64.RAX, amd64.RBX)
	}
	a.Ret()
}

func starts(list []Function) (out []uint64) {
	for _, f := range list {
		if !f.Part {
			out = append(out, f.Start-base)
		}
	}
	return out
}

func assemble(t testing.TB, make func(a *amd64.Asm)) []byte {
	t.Helper()
	a := amd64.NewAsm(base, nil)
	make(a)
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// What is called is a function; a loop's body behind a jump, and what only conditional jumps lead to, is none.
func TestWhatIsCalledIsAFunctionAndWhatIsJumpedToIsNot(t *testing.T) {
	var want []uint64
	code := assemble(t, func(a *amd64.Asm) {
		a.CallTo(base + 16)
		a.Ret()
		a.Align(16)
		want = append(want, a.PC()-base)
		loop, test := a.NewLabel(), a.NewLabel()
		a.Jmp(test)
		a.Align(16)
		a.Place(loop)
		a.Mov(amd64.RAX, amd64.RBX)
		a.Place(test)
		a.Test(amd64.RAX, amd64.RAX)
		a.Jcc(amd64.CondNE, loop)
		a.Ret()
		a.Align(16)
		want = append(want, a.PC()-base) // nothing leads here, and it is a whole function
		a.Push(amd64.RBX)
		filler2(a)
		a.Pop(amd64.RBX)
		a.Ret()
		a.Align(16)
		a.Pop(amd64.RBX) // a part that nobody knows of: it takes what it hasn't put there
		a.Ret()
	})
	if got := starts(find(t, code, 6)); !slices.Equal(got, want) {
		t.Errorf("%#x, want %#x", got, want)
	}
}

func filler2(a *amd64.Asm) {
	for range worth {
		a.Mov(amd64.RAX, amd64.RBX)
	}
}

// Tables before functions, as GHC puts them there, are none, whatever they look like as code; what data points to behind them isn't
// believed, and what is called is.
func TestTablesBetweenFunctionsAreNoFunctions(t *testing.T) {
	var pointers []uint64
	a := amd64.NewAsm(base, nil)
	a.CallTo(base + 16)
	a.Ret()
	a.Align(16)
	filler(a)
	for i := range 200 {
		a.Raw(make([]byte, -int(a.PC())&7)...)
		// Layout, type and what garbage collection needs: as code it is add, or and mov, and runs into the function.
		a.Raw(binary.LittleEndian.AppendUint64(nil, uint64(i)<<32|0x8B)...)
		a.Raw(binary.LittleEndian.AppendUint64(nil, 0x0004_0009_0000_0000|uint64(i))...)
		pointers = append(pointers, a.PC()-base)
		a.Mov(amd64.RBX, amd64.RAX)
		a.Raw(0xFF, 0x65, 0x00) // jmp *0(%rbp)
	}
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[uint64]bool{}
	for _, p := range pointers {
		for b := p - 23; b < p; b++ {
			tables[b] = true
		}
	}
	for _, f := range find(t, code, 6, pointers...) {
		if at := f.Start - base; tables[at] && !slices.Contains(pointers, at) {
			t.Errorf("%#x, in a table, is taken for a function (%v)", at, f.Evidence)
		}
	}
}

// FuzzFind holds what is found in any bytes against what every list is: sorted, in the gaps, without overlaps.
func FuzzFind(f *testing.F) {
	f.Add(assemble(f, filler), uint16(3), uint16(40), true)
	f.Add(slices.Repeat([]byte{0xFF, 0x24, 0xC5, 0x00, 0x10, 0x40, 0x00}, 100), uint16(0), uint16(0), true)
	f.Add(slices.Repeat([]byte{0xE8, 0x00, 0x01, 0x00, 0x00, 0x75, 0xF0, 0xC3}, 80), uint16(8), uint16(9), false)
	f.Fuzz(func(t *testing.T, code []byte, known, point uint16, fixed bool) {
		if len(code) == 0 || len(code) > 1<<16 {
			return
		}
		end := base + uint64(known)%uint64(len(code)+1)
		in := &Input{
			Texts: []Text{{base, code}}, Known: []Range{{base, end}}, Fixed: fixed,
			Pointers: func(visit func(uint64)) error { visit(base + uint64(point)); visit(1 << 63); return nil },
			Read: func(addr, n uint64) []byte {
				if addr < base || addr-base >= uint64(len(code)) {
					return nil
				}
				rest := code[addr-base:]
				return rest[:min(n, uint64(len(rest)))]
			},
		}
		got, err := Find(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		at := end
		for _, g := range got {
			if g.Start < at || g.End <= g.Start || g.End > base+uint64(len(code)) || g.Evidence == 0 {
				t.Fatalf("%#x to %#x behind %#x, of %d bytes", g.Start, g.End, at, len(code))
			}
			at = g.End
		}
	})
}
