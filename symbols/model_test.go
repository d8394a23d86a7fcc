package symbols

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/dwarf"
)

// model is a program by hand: what DWARF says, unit by unit, and where code is.
type model struct {
	code    []region
	units   []dwarf.Contents
	strings []string // String k+1 is strings[k]
	symbols *symbolTable
}

// text makes a String.
func (m *model) text(s string) dwarf.String {
	if s == "" {
		return 0
	}
	if k := slices.Index(m.strings, s); k >= 0 {
		return dwarf.String(k + 1)
	}
	m.strings = append(m.strings, s)
	return dwarf.String(len(m.strings))
}

// file adds a file to a unit and returns its index.
func (m *model) file(unit int, dir, name string) uint32 {
	c := &m.units[unit]
	if len(c.Files) == 0 {
		c.Files = []dwarf.File{{}}
	}
	c.Files = append(c.Files, dwarf.File{Dir: m.text(dir), Name: m.text(name)})
	return uint32(len(c.Files) - 1)
}

// ranges adds ranges, given as low, high, low, high.
func (m *model) ranges(unit int, bounds ...uint64) dwarf.Span {
	c := &m.units[unit]
	s := dwarf.Span{First: uint32(len(c.Ranges)), Count: uint32(len(bounds) / 2)}
	for k := 0; k < len(bounds); k += 2 {
		c.Ranges = append(c.Ranges, dwarf.Range{Low: bounds[k], High: bounds[k+1]})
	}
	return s
}

// function adds a function; the inlines that follow belong to it.
func (m *model) function(unit int, name string, bounds ...uint64) {
	c := &m.units[unit]
	f := dwarf.Function{Name: m.text(name), Ranges: m.ranges(unit, bounds...)}
	f.Inlines.First = uint32(len(c.Inlines))
	c.Functions = append(c.Functions, f)
}

func (m *model) inline(unit int, name string, depth, file, line uint32, bounds ...uint64) {
	c := &m.units[unit]
	c.Inlines = append(c.Inlines, dwarf.Inline{
		Name: m.text(name), Depth: depth, CallFile: file, CallLine: line, Ranges: m.ranges(unit, bounds...),
	})
	c.Functions[len(c.Functions)-1].Inlines.Count++
}

func (m *model) row(unit int, addr uint64, file, line uint32) {
	m.units[unit].Rows = append(m.units[unit].Rows, dwarf.Row{Addr: addr, File: file, Line: line})
}

func (m *model) end(unit int, addr uint64) {
	m.units[unit].Rows = append(m.units[unit].Rows, dwarf.Row{Addr: addr, End: true})
}

// bytes makes the map, the units spread over workers.
func (m *model) bytes(t testing.TB, workers int) []byte {
	t.Helper()
	if m.symbols == nil {
		m.symbols = &symbolTable{names: &symbolNames{}}
	}
	var list []*worker
	for range workers {
		w := &worker{symbols: m.symbols, regions: m.code}
		w.files.number(sourceFile{})
		w.callees.add(callee{})
		list = append(list, w)
	}
	for k := range m.units {
		w := list[k%workers]
		w.contents = m.units[k]
		w.convert(uint32(k))
	}
	out := &writer{
		image: "model", id: "0123", regions: slices.Clone(m.code), workers: list, symbols: m.symbols, blocks: merge(list, m.symbols),
		strings: func(s dwarf.String) []byte {
			if s == 0 || uint64(s) > uint64(len(m.strings)) {
				return nil
			}
			return []byte(m.strings[s-1])
		},
	}
	out.head.flags |= flagLayout
	if err := out.number(); err != nil {
		t.Fatal(err)
	}
	if err := out.lay(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := out.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (m *model) build(t testing.TB) *Map {
	t.Helper()
	got, err := Parse("model", m.bytes(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// show writes frames as "f a.c:1 < g b.c:2", innermost first.
func show(frames []Frame, reason Reason) string {
	if reason != Found {
		return reason.String()
	}
	var parts []string
	for k := range frames {
		f := &frames[k]
		parts = append(parts, fmt.Sprintf("%s %s:%d", f.Linkage, f.File(), f.Line))
	}
	return strings.Join(parts, " < ")
}

func (m *model) expect(t *testing.T, got *Map, addr uint64, want string) {
	t.Helper()
	if s := show(got.Lookup(addr, nil)); s != want {
		t.Errorf("%#x: got %q, want %q", addr, s, want)
	}
}

// answer is what the map must say of an address in a unit without overlapping
// functions, found in the simplest way.
func (m *model) answer(addr uint64) string {
	inside := func(c *dwarf.Contents, s dwarf.Span) bool {
		for _, r := range c.Ranges[s.First : s.First+s.Count] {
			if addr >= r.Low && addr < r.High {
				return true
			}
		}
		return false
	}
	for u := range m.units {
		c := &m.units[u]
		for k := len(c.Functions) - 1; k >= 0; k-- {
			if f := &c.Functions[k]; inside(c, f.Ranges) {
				return m.chain(c, f, addr, inside)
			}
		}
	}
	return NoFunction.String()
}

func (m *model) chain(c *dwarf.Contents, f *dwarf.Function, addr uint64, inside func(*dwarf.Contents, dwarf.Span) bool) string {
	file, line := uint32(0), uint32(0)
	on := false
	for k, r := range c.Rows {
		if r.Addr <= addr && !r.End && c.Rows[k+1].Addr > addr {
			file, line, on = r.File, r.Line, true
		}
	}
	if !on {
		file, line = 0, 0
	}
	list := c.Inlines[f.Inlines.First : f.Inlines.First+f.Inlines.Count]
	at := -1
	for k := range list {
		if inside(c, list[k].Ranges) {
			at = k
		}
	}
	var frames []Frame
	add := func(name dwarf.String, file, line uint32) {
		frame := Frame{Linkage: m.get(name), Line: line}
		if file > 0 {
			frame.Dir, frame.Base = m.get(c.Files[file].Dir), m.get(c.Files[file].Name)
		}
		frames = append(frames, frame)
	}
	for at >= 0 {
		add(list[at].Name, file, line)
		file, line = list[at].CallFile, list[at].CallLine
		depth := list[at].Depth
		for at--; at >= 0 && list[at].Depth >= depth; at-- {
		}
	}
	add(f.Name, file, line)
	return show(frames, Found)
}

func (m *model) get(s dwarf.String) string {
	if s == 0 {
		return ""
	}
	return m.strings[s-1]
}

// randomModel makes two units of functions with inlined calls and rows at random.
func randomModel(random *rand.Rand) *model {
	m := &model{code: []region{{base: 0x1000, size: 0x2000}, {base: 0x10000, size: 0x1000}}, units: make([]dwarf.Contents, 2)}
	next := uint64(0x1000)
	for u := range m.units {
		var files []uint32
		for k := range 1 + random.IntN(4) {
			files = append(files, m.file(u, fmt.Sprintf("/dir%d", k%2), fmt.Sprintf("f%d.c", k)))
		}
		file := func() uint32 { return append(files, 0)[random.IntN(len(files)+1)] }
		line := func() uint32 {
			if random.IntN(20) == 0 {
				return random.Uint32() >> (1 + random.IntN(31))
			}
			return 100 + random.Uint32N(60)
		}
		for f := range 1 + random.IntN(6) {
			size := uint64(1 + random.IntN(600))
			start := next + uint64(random.IntN(8))
			next = start + size
			cold := 0x10000 + uint64(u*6+f)*0x40
			m.function(u, fmt.Sprintf("fn%d_%d", u, f), start, next, cold, cold+0x20)
			depth := uint32(0)
			for k := range random.IntN(40) {
				depth = 1 + random.Uint32N(depth+1)
				a := start + uint64(random.IntN(int(size)))
				b := a + 1 + uint64(random.IntN(int(next-a)))
				name := ""
				if random.IntN(10) > 0 {
					name = fmt.Sprintf("in%d", k%7)
				}
				m.inline(u, name, depth, file(), line(), a, b, cold, cold+uint64(random.IntN(0x20)))
			}
			if random.IntN(8) == 0 {
				continue // a function without rows
			}
			for at := start; at < next; at += uint64(1 + random.IntN(20)) {
				m.row(u, at, file(), line())
			}
			m.end(u, next)
		}
	}
	return m
}

func checkModel(t *testing.T, m *model) {
	t.Helper()
	data := m.bytes(t, 1)
	if !bytes.Equal(data, m.bytes(t, 2)) {
		t.Fatal("the map depends on the number of workers")
	}
	got, err := Parse("model", data)
	if err != nil {
		t.Fatal(err)
	}
	frames := make([]Frame, 0, 64)
	for _, r := range m.code {
		for addr := r.base; addr < r.base+r.size; addr++ {
			if s, want := show(got.Lookup(addr, frames)), m.answer(addr); s != want {
				t.Fatalf("%#x:\ngot  %s\nwant %s", addr, s, want)
			}
		}
	}
}

func TestRandomProgramsAnswerAsTheirDWARFSays(t *testing.T) {
	for seed := range uint64(60) {
		checkModel(t, randomModel(rand.New(rand.NewPCG(seed, 7))))
	}
}

func FuzzProgramsAnswerAsTheirDWARFSays(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		checkModel(t, randomModel(rand.New(rand.NewPCG(seed, 1))))
	})
}
