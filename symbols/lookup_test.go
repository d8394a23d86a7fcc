package symbols

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/callreel/callreel/dwarf"
	"github.com/callreel/callreel/object"
)

// oneFile is a model of one unit with the file a.c, index 1.
func oneFile() *model {
	m := &model{code: []region{{base: 0x1000, size: 0x1000}}, units: make([]dwarf.Contents, 1)}
	m.file(0, "/src", "a.c")
	return m
}

func TestFramesOfInlinedCallsComeInnermostFirst(t *testing.T) {
	m := oneFile()
	header := m.file(0, "/include", "h.h")
	m.function(0, "outer", 0x1000, 0x1040)
	m.inline(0, "middle", 1, 1, 7, 0x1010, 0x1020, 0x1030, 0x1038)
	m.inline(0, "inner", 2, header, 8, 0x1014, 0x1018)
	m.row(0, 0x1000, 1, 1)
	m.row(0, 0x1012, header, 2)
	m.row(0, 0x1016, header, 3)
	m.end(0, 0x1040)
	got := m.build(t)
	m.expect(t, got, 0x1000, "outer /src/a.c:1")
	m.expect(t, got, 0x1010, "middle /src/a.c:1 < outer /src/a.c:7")
	m.expect(t, got, 0x1014, "inner /include/h.h:2 < middle /include/h.h:8 < outer /src/a.c:7")
	m.expect(t, got, 0x1017, "inner /include/h.h:3 < middle /include/h.h:8 < outer /src/a.c:7")
	m.expect(t, got, 0x1020, "outer /include/h.h:3")
	m.expect(t, got, 0x1037, "middle /include/h.h:3 < outer /src/a.c:7")
	frames, _ := got.Lookup(0x1016, nil)
	for k, f := range frames {
		if f.Inlined != (k < 2) || f.FunctionStart != 0x1000 {
			t.Errorf("frame %d: inlined %v, function at %#x", k, f.Inlined, f.FunctionStart)
		}
	}
}

func TestAddressesOutsideOfFunctionsHaveNoFrames(t *testing.T) {
	m := oneFile()
	m.function(0, "f", 0x1000, 0x1005)
	m.function(0, "g", 0x1010, 0x1020)
	m.row(0, 0x1000, 1, 1) // covers the padding, as assemblers make it
	m.row(0, 0x1010, 1, 2)
	m.end(0, 0x1020)
	got := m.build(t)
	for _, addr := range []uint64{0x1005, 0x100f, 0x1020, 0x1fff} {
		m.expect(t, got, addr, NoFunction.String())
	}
	for _, addr := range []uint64{0, 0xfff, 0x2000, ^uint64(0)} {
		m.expect(t, got, addr, OutsideCode.String())
	}
	before := []Frame{{Linkage: "kept"}}
	if after, reason := got.Lookup(0x1005, before); reason != NoFunction || len(after) != 1 || after[0].Linkage != "kept" {
		t.Errorf("got %v, %v", after, reason)
	}
}

func TestEmptyMapIsStripped(t *testing.T) {
	got := oneFile().build(t)
	if !got.Stripped() {
		t.Error("not stripped")
	}
	if _, reason := got.Lookup(0x1000, nil); reason != Stripped {
		t.Errorf("got %v", reason)
	}
}

func TestNumbersOfAnySizeAreKept(t *testing.T) {
	m := oneFile()
	m.code = []region{{base: 0x1000, size: 1 << 30}}
	const far = 0x1000 + 1<<29 // a row that lasts longer than an advance can say
	m.function(0, "f", 0x1000, far+0x10)
	m.inline(0, "in", 1, 1, 1<<31-1, far, far+8)
	m.row(0, 0x1000, 1, 1<<31-1)
	m.row(0, 0x1001, 1, 1<<31) // more than is kept
	m.row(0, 0x1002, 1, 1)
	m.row(0, far, 1, 70000)
	m.end(0, far+0x10)
	got := m.build(t)
	m.expect(t, got, 0x1000, "f /src/a.c:2147483647")
	m.expect(t, got, 0x1001, "f /src/a.c:0")
	m.expect(t, got, 0x1002, "f /src/a.c:1")
	m.expect(t, got, far-1, "f /src/a.c:1")
	m.expect(t, got, far+7, "in /src/a.c:70000 < f /src/a.c:2147483647")
	m.expect(t, got, far+8, "f /src/a.c:70000")
}

func TestLongNamesAndPathsAreKept(t *testing.T) {
	for _, n := range []int{1, 126, 127, 128, 254, 255, 256, 70000} {
		m := oneFile()
		name, dir := strings.Repeat("n", n), "/"+strings.Repeat("d", n)
		file := m.file(0, dir, name)
		m.function(0, name, 0x1000, 0x1010)
		m.row(0, 0x1000, file, 1)
		m.end(0, 0x1010)
		m.expect(t, m.build(t), 0x1000, fmt.Sprintf("%s %s/%s:1", name, dir, name))
	}
}

// Chains longer than a block has room for lose calls between the function and the
// inner ones, and nothing else.
func TestVeryDeepChainsKeepTheirInnerCalls(t *testing.T) {
	m := oneFile()
	m.function(0, "f", 0x1000, 0x1400)
	const depth = 200
	for k := range uint32(depth) {
		m.inline(0, fmt.Sprint("in", k), k+1, 1, k+1, 0x1000+uint64(k), 0x1400-uint64(k))
	}
	m.row(0, 0x1000, 1, 9)
	m.end(0, 0x1400)
	got := m.build(t)
	frames, reason := got.Lookup(0x1200, nil)
	if reason != Found || len(frames) < 2 || len(frames) > maxDepth+1 {
		t.Fatalf("%d frames, %v", len(frames), reason)
	}
	for k, f := range frames[:len(frames)-1] {
		if want := fmt.Sprint("in", depth-1-k); f.Linkage != want {
			t.Errorf("frame %d is %s, want %s", k, f.Linkage, want)
		}
	}
	if last := frames[len(frames)-1]; last.Linkage != "f" || last.Inlined {
		t.Errorf("the last frame is %+v", last)
	}
}

func TestOfUnitsThatClaimTheSameCodeTheFirstWins(t *testing.T) {
	m := oneFile()
	m.units = append(m.units, dwarf.Contents{})
	m.file(1, "/src", "b.c")
	m.function(0, "first", 0x1010, 0x1020)
	m.function(1, "second", 0x1000, 0x1030)
	for u := range 2 {
		m.row(u, 0x1000, 1, uint32(10+u))
		m.row(u, 0x1028, 1, uint32(20+u))
		m.end(u, 0x1030)
	}
	got := m.build(t)
	m.expect(t, got, 0x1008, "second /src/b.c:11")
	m.expect(t, got, 0x1010, "first /src/a.c:10")
	m.expect(t, got, 0x1020, "second /src/b.c:11")
	m.expect(t, got, 0x102f, "second /src/b.c:21")
	if frames, _ := got.Lookup(0x102f, nil); frames[0].FunctionStart != 0x1000 {
		t.Errorf("function at %#x, want 0x1000", frames[0].FunctionStart)
	}
}

// named makes a symbol table by hand.
func (m *model) named(t *testing.T, list []object.Symbol) {
	t.Helper()
	names := &symbolNames{list: list}
	table := &symbolTable{names: names}
	var candidates []candidate
	for k, s := range list {
		candidates = append(candidates, candidate{addr: s.Addr, size: s.Size, name: uint32(k)})
	}
	table.lay(candidates, m.code)
	m.symbols = table
}

func TestSymbolsNameWhatTheyCover(t *testing.T) {
	m := oneFile()
	m.function(0, "dwarf", 0x1000, 0x1040)
	m.function(0, "unnamed", 0x1080, 0x1090)
	m.row(0, 0x1000, 1, 1)
	m.row(0, 0x1100, 1, 2) // assembly: rows and symbols only
	m.row(0, 0x1110, 1, 3)
	m.end(0, 0x1120)
	m.named(t, []object.Symbol{
		{Name: "alias", Addr: 0x1000, Size: 0x20},
		{Name: "small", Addr: 0x1000, Size: 0x10},
		{Name: "last", Addr: 0x1000, Size: 0x20},
		{Name: "label", Addr: 0x1018}, // ends with the symbol it stands inside of
		{Name: "before", Addr: 0x1070},
		{Name: "asm", Addr: 0x1104},
		{Name: "sized", Addr: 0x1200, Size: 0x10},
		{Name: "open", Addr: 0x1300},
	})
	got := m.build(t)
	for addr, want := range map[uint64]string{
		0x1000: "last /src/a.c:1",  // of several the largest, then the last
		0x1018: "label /src/a.c:1", // the one that starts last
		0x1020: "dwarf /src/a.c:1", // beyond the symbols, still in the function
		0x1040: NoFunction.String(),
		0x1078: "before /src/a.c:1",
		0x1080: "unnamed /src/a.c:1", // a symbol without a size does not reach into a function
		0x1090: NoFunction.String(),  // nor beyond it
		0x1100: NoFunction.String(),
		0x1104: "asm /src/a.c:2",
		0x1110: "asm /src/a.c:3",
		0x1120: NoFunction.String(), // the rows end
		0x120f: "sized :0",
		0x1210: NoFunction.String(),
		0x1fff: "open :0",
	} {
		m.expect(t, got, addr, want)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	m := oneFile()
	m.function(0, "f", 0x1000, 0x1100)
	m.inline(0, "in", 1, 1, 5, 0x1000, 0x1080)
	m.row(0, 0x1000, 1, 1)
	m.end(0, 0x1100)
	got := m.build(t)
	frames := make([]Frame, 0, 8)
	if n := testing.AllocsPerRun(1000, func() { frames, _ = got.Lookup(0x1010, frames[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(frames) != 2 {
		t.Errorf("%d frames", len(frames))
	}
}

func TestLookupsInSeveralGoroutines(t *testing.T) {
	m := oneFile()
	m.function(0, "f", 0x1000, 0x1100)
	m.row(0, 0x1000, 1, 1)
	m.end(0, 0x1100)
	got := m.build(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for addr := uint64(0x1000); addr < 0x1100; addr++ {
				m.expect(t, got, addr, "f /src/a.c:1")
			}
		})
	}
	group.Wait()
}

func TestFunctionsListsRangesInOrder(t *testing.T) {
	m := oneFile()
	m.function(0, "cold", 0x1800, 0x1810, 0x1000, 0x1700)
	for k := range uint64(0x700 / 2) { // enough for several blocks
		m.row(0, 0x1000+2*k, 1, uint32(k))
	}
	m.end(0, 0x1700)
	m.function(0, "g", 0x1700, 0x1705)
	var list []string
	m.build(t).Functions(func(start, end uint64, name string) bool {
		list = append(list, fmt.Sprintf("%x-%x %s", start, end, name))
		return true
	})
	if got, want := strings.Join(list, ", "), "1000-1700 cold, 1700-1705 g, 1800-1810 cold"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
