package reel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// knows is a Namer that knows functions by their addresses.
type knows map[uint64]Naming

func (k knows) Name(_ *Image, functions []*Function, known []Naming) {
	for i, fn := range functions {
		n, ok := k[fn.Addr]
		if !ok {
			continue
		}
		if n.Name == "" { // a place only
			n.Name, n.From = known[i].Name, known[i].From
		}
		known[i] = n
	}
}

// unnamedReel writes a reel of some functions and returns its bytes.
func unnamedReel(t testing.TB, functions int, closed bool) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.reel")
	w, err := Create(path, Header{PID: 1, Clock: Clock{TicksPerSecond: 1e9}}, Options{})
	must(t, err)
	_, err = w.AddImage(Image{Path: "/bin/server", ID: "c0ffee"})
	must(t, err)
	list := make([]Function, functions)
	for i := range list {
		list[i] = Function{Name: fmt.Sprintf("server+0x%x", 64*i), Image: 1, Addr: uint64(64 * i), Size: 64}
	}
	_, err = w.AddFunctions(list)
	must(t, err)
	tw, err := w.Thread(Thread{TID: 7})
	must(t, err)
	must(t, tw.Append([]Event{Entry(10, 0x1000, 1), Exit(20, 0x1000, 1)}))
	if closed {
		must(t, w.Close())
	} else {
		must(t, w.Flush())
		t.Cleanup(func() { w.Close() })
	}
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parsed(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Parse("x", data)
	must(t, err)
	return f
}

// withNames is the reel with what a Namer knows.
func withNames(t testing.TB, data []byte, k knows) []byte {
	t.Helper()
	f := parsed(t, data)
	f.NameBy(k)
	b, size, _, err := f.Appendix()
	must(t, err)
	return append(bytes.Clone(data[:size]), b...)
}

func checkNamings(t *testing.T, f *File, want map[uint32]Naming) {
	t.Helper()
	for id, w := range want {
		if got, ok := f.Naming(id); !ok || got != w {
			t.Errorf("function %d: %+v, want %+v", id, got, w)
		}
		if fn, _ := f.Function(id); fn.Name != w.Name {
			t.Errorf("function %d is %q, want %q", id, fn.Name, w.Name)
		}
	}
}

func TestNamesThatWereAppendedAreRead(t *testing.T) {
	for _, closed := range []bool{true, false} {
		data := unnamedReel(t, 5, closed)
		first := knows{
			0:   {Name: "a", From: NamedByDWARF, File: "/src/a.c", Line: 3},
			64:  {Name: "b", From: NamedBySymbols},
			128: {File: "/src/a.c", Line: 9},
		}
		want := map[uint32]Naming{1: first[0], 2: first[64], 3: {Name: "server+0x80", File: "/src/a.c", Line: 9}, 4: {Name: "server+0xc0"}}
		once := withNames(t, data, first)
		f := parsed(t, once)
		checkNamings(t, f, want)
		if f.Closed() != closed || len(f.Damage()) > 0 || f.Events() != 2 {
			t.Errorf("closed %v: closed %v, %v, %d events", closed, f.Closed(), f.Damage(), f.Events())
		}
		if !bytes.HasPrefix(once, data) {
			t.Error("the reel itself has changed")
		}
		if again := withNames(t, once, first); !bytes.Equal(again, once) {
			t.Errorf("%d bytes were appended for nothing new", len(again)-len(once))
		}
		second := knows{64: {Name: "better", From: NamedByDebuginfod, File: "/src/b.c", Line: 1}, 192: {Name: "d", From: NamedByDWARF}}
		want[2], want[4] = second[64], second[192]
		f = parsed(t, withNames(t, once, second))
		checkNamings(t, f, want)
		if f.Closed() != closed || len(f.Damage()) > 0 {
			t.Errorf("closed %v: closed %v, %v after the second time", closed, f.Closed(), f.Damage())
		}
	}
}

func TestManyNamesTakeSeveralChunks(t *testing.T) {
	const n = 50_000
	k := knows{}
	for i := range uint64(n) {
		k[64*i] = Naming{Name: fmt.Sprintf("a_function_with_the_number_%d", i), From: NamedByDWARF, File: fmt.Sprintf("/src/%d.c", i/100), Line: uint32(i)}
	}
	data := withNames(t, unnamedReel(t, n, true), k)
	f := parsed(t, data)
	for id := uint32(1); id <= n; id++ {
		if got, _ := f.Naming(id); got != k[64*uint64(id-1)] {
			t.Fatalf("function %d: %+v", id, got)
		}
	}
	entries, ok := indexed(data)
	chunks := 0
	for i := range entries {
		if entries[i].kind == KindNames {
			chunks++
		}
	}
	if !ok || chunks < 2 {
		t.Errorf("%d chunks of names, indexed %v", chunks, ok)
	}
}

// What attach was about to append when it was killed never costs what was there before.
func TestNamesThatAreCutShortCostNothingElse(t *testing.T) {
	data := unnamedReel(t, 5, true)
	whole := withNames(t, data, knows{0: {Name: "a", From: NamedByDWARF, File: "/src/a.c", Line: 3}})
	for n := len(data); n <= len(whole); n++ {
		f := parsed(t, whole[:n])
		name, _ := f.Naming(1)
		if !f.Closed() || f.Events() != 2 || name.Name != "a" && name.Name != "server+0x0" {
			t.Fatalf("cut at %d of %d: closed %v, %d events, %+v", n, len(whole), f.Closed(), f.Events(), name)
		}
		if damaged := n != len(data) && n != len(whole); damaged && name.Name != "a" && len(f.Damage()) == 0 {
			t.Errorf("cut at %d: no damage is told", n)
		}
		mended := parsed(t, withNames(t, whole[:n], knows{0: {Name: "b", From: NamedByDWARF}}))
		if got, _ := mended.Naming(1); got.Name != "b" || !mended.Closed() || len(mended.Damage()) > 0 {
			t.Fatalf("cut at %d, and named again: %+v, closed %v, %v", n, got, mended.Closed(), mended.Damage())
		}
	}
}

func TestHostileNamesAreDamage(t *testing.T) {
	uv := func(values ...uint64) []byte {
		var b []byte
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	for name, k := range map[string]struct {
		count   uint32
		payload []byte
	}{
		"more functions than bytes": {1 << 30, uv(0, 1, 0, 0)},
		"more files than functions": {1, uv(1<<40, 1, 0, 0)},
		"a file that there isn't":   {1, uv(0, 1, hasPlace, 2, 0, 7)},
		"IDs that don't rise":       {2, uv(0, 1, 0, 2, 0, 0, 2)},
		"IDs that wrap around":      {2, uv(0, 5, 0, 2, 1<<64-1, 0, 2)},
		"a name cut short":          {1, uv(0, 1, hasName, 2, 1000)},
		"nothing":                   {1, nil},
	} {
		f := parsed(t, append(unnamedReel(t, 5, false), chunkOf(KindNames, k.count, k.payload)...))
		if len(f.Damage()) != 1 {
			t.Errorf("%s: damage %v", name, f.Damage())
		}
		for id := range uint32(7) {
			f.Naming(id)
		}
	}
	unknown := append(uv(0, 1, hasName, 200), 1, 'a') // by somebody whom only later versions know
	unknown = append(unknown, uv(5000, hasName, 2)...)
	unknown = append(unknown, 1, 'b') // of a function that is lost
	f := parsed(t, append(unnamedReel(t, 5, false), chunkOf(KindNames, 2, unknown)...))
	checkNamings(t, f, map[uint32]Naming{1: {Name: "a", From: lastNameSource}})
	if len(f.Damage()) != 0 {
		t.Errorf("damage %v", f.Damage())
	}
}

func chunkOf(kind ChunkKind, count uint32, payload []byte) []byte {
	b := make([]byte, frameSize)
	f := frame{kind: kind, count: count}
	f.put(b, payload)
	return append(b, payload...)
}

// Names before the functions that they are of: only a hostile file has them so.
func TestNamesBeforeFunctions(t *testing.T) {
	data := unnamedReel(t, 2, false)
	first, _ := parseFrame(data)
	head := frameSize + int(first.length)
	names := chunkOf(KindNames, 1, append([]byte{0, 2, hasName, 2, 1}, 'x'))
	f := parsed(t, append(append(bytes.Clone(data[:head]), names...), data[head:]...))
	for id := range uint32(4) {
		f.Naming(id)
	}
	if f.Events() != 2 {
		t.Errorf("%d events", f.Events())
	}
}

func FuzzNames(f *testing.F) {
	data := unnamedReel(f, 5, false)
	f.Add(uint32(1), []byte{1, 2, 'a', 'b', 1, hasName | hasPlace, 2, 1, 'x', 0, 9})
	f.Add(uint32(2), []byte{0, 1, hasName, 1, 1, 'x', 2, hasName, 2, 1, 'y'})
	f.Fuzz(func(t *testing.T, count uint32, payload []byte) {
		file := parsed(t, append(bytes.Clone(data), chunkOf(KindNames, count, payload)...))
		known := map[uint32]Naming{}
		for id := range uint32(7) {
			if n, ok := file.Naming(id); ok {
				known[id] = n
			}
		}
		if file.Events() != 2 || len(known) != 5 {
			t.Fatalf("%d events, %d functions", file.Events(), len(known))
		}
		file.NameBy(knows{256: {Name: "e", From: NamedByDWARF}})
		b, size, _, err := file.Appendix()
		must(t, err)
		again := parsed(t, append(bytes.Clone(file.data[:size]), b...))
		known[5] = Naming{Name: "e", From: NamedByDWARF}
		for id, n := range known {
			if got, _ := again.Naming(id); got != n {
				t.Fatalf("function %d: %+v, was %+v", id, got, n)
			}
		}
	})
}
