package reel

import (
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// argumentsReel writes a reel of two threads whose calls of function 1 have values: an int and a string at the entry, an enum at the
// return. n calls a thread, each around one of function 2 that has none.
func argumentsReel(t testing.TB, n int, mode ClockMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arguments.reel")
	w, err := Create(path, Header{Clock: Clock{Mode: mode, TicksPerSecond: 1e9, BaseTick: 1}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddFunctions([]Function{{Name: "f"}, {Name: "g"}}); err != nil {
		t.Fatal(err)
	}
	entry := []Argument{{Name: "n", Type: "int", Kind: ArgumentInt}, {Name: "s", Type: "char*", Kind: ArgumentString}}
	names := map[int64]string{0: "EVEN", 1: "ODD"}
	for _, err := range []error{w.AddArguments(1, false, entry), w.AddArguments(1, true, []Argument{{Name: "return", Kind: ArgumentEnum, Names: names}})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for tid := range 2 {
		tw, err := w.Thread(Thread{TID: 100 + tid})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			at := func(k int) uint64 {
				if mode == ClockNone || mode == ClockExit && k < 2 {
					return 0
				}
				return uint64(10 + 100*i + 10*k)
			}
			events := []Event{Entry(at(0), 800, 1), Entry(at(1), 700, 2), Exit(at(2), 700, 2), Exit(at(3), 800, 1)}
			text := Value{Bytes: []byte("call " + strconv.Itoa(i%7)), Cut: i%7 == 3}
			if i%7 == 4 {
				text = Value{State: ValueNull}
			}
			values := []ValueSet{
				{Number: 0, Values: []Value{{Bits: uint64(int64(-i))}, text}},
				{Number: 3, Values: []Value{{Bits: uint64(i % 2)}}},
			}
			if i%11 == 5 {
				values = values[1:] // those of an entry are missing
			}
			if err := tw.AppendWith(events, values); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A value whose only call was open at the end comes behind those of calls that ended.
func TestGroupsAreOrderedByWhatEnded(t *testing.T) {
	w, path := create(t, Header{Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1}})
	_, err := w.AddFunctions([]Function{{Name: "f"}})
	realtest.Must(t, err)
	realtest.Must(t, w.AddArguments(1, false, []Argument{{Name: "n", Type: "int", Kind: ArgumentInt}}))
	tw := addThread(t, w, Thread{TID: 7})
	value := func(number, n uint64) ValueSet { return ValueSet{Number: number, Values: []Value{{Bits: n}}} }
	realtest.Must(t, tw.AppendWith([]Event{Entry(100, base, 1), Entry(200, base-32, 1), Exit(230, base-32, 1)}, []ValueSet{value(0, 1), value(1, 2)}))
	realtest.Must(t, w.ClockPair(9000, 9000))
	realtest.Must(t, w.Close())
	groups, err := GroupCalls(open(t, path), []uint32{1}, "n")
	realtest.Must(t, err)
	if len(groups) != 2 || groups[0].Text != "2" || groups[0].Total != 30 || groups[0].UnfinishedTotal != 0 || groups[0].EndedMax != 30 {
		t.Fatalf("%+v", groups)
	}
	if g := groups[1]; g.Text != "1" || g.Total != 8900 || g.UnfinishedTotal != 8900 || g.EndedMax != 0 || g.Max != 8900 {
		t.Errorf("%+v", g)
	}
}

func TestValuesAreFoundByTheirCalls(t *testing.T) {
	const n = 20000
	for _, mode := range []ClockMode{ClockFull, ClockExit, ClockNone} {
		f, err := Open(argumentsReel(t, n, mode))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, thread := range f.Threads() {
			values := f.Values(thread.Key)
			i, base := 0, uint64(0)
			var p Pairer
			p = Pairer{
				OnEntry: func(c *Call) {
					v := values.Of(c.Func, false, c.Start, c.SP, base+uint64(p.Index()))
					switch {
					case c.Func != 1 || i%11 == 5:
						if v != nil {
							t.Fatalf("%v: call %d of %d has values that are none of its", mode, i, c.Func)
						}
					case len(v) != 2 || int64(v[0].Bits) != int64(-i):
						t.Fatalf("%v: call %d has %v", mode, i, v)
					}
				},
				OnCall: func(c *Call) {
					v := values.Of(c.Func, true, c.End, c.SP, base+uint64(p.Index()))
					if c.Func == 1 {
						if len(v) != 1 || v[0].Bits != uint64(i%2) {
							t.Fatalf("%v: call %d returns %v", mode, i, v)
						}
						i++
					}
				},
			}
			p.SetTime(f.FirstTick())
			f.ReadThread(thread.Key, func(events []Event, lost bool) bool {
				p.Push(events)
				base += uint64(len(events))
				return true
			})
			if i != n {
				t.Errorf("%v: %d calls", mode, i)
			}
		}
	}
}

func TestCallsAreGroupedByTheirValues(t *testing.T) {
	const n = 7 * 11 * 10
	f, err := Open(argumentsReel(t, n, ClockFull))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	groups, err := GroupCalls(f, []uint32{1, 2}, "s")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"?": 2 * n / 11}
	for i := range n {
		if i%11 != 5 {
			name := "call " + strconv.Itoa(i%7)
			switch i % 7 {
			case 3:
				name += "…"
			case 4:
				name = "null"
			}
			want[name] += 2
		}
	}
	got := map[string]uint64{}
	for _, g := range groups {
		got[g.Text] = g.Calls
		if g.P50 < 29 || g.P50 > 31 || g.Max != 30 || g.Total != 30*g.Calls {
			t.Errorf("%+v, though each call takes 30", g)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	groups, err = GroupCalls(f, []uint32{1}, "return")
	if err != nil || len(groups) != 2 || groups[0].Text != "EVEN" || groups[0].Calls != n || groups[1].Text != "ODD" || groups[1].Calls != n {
		t.Errorf("%+v, %v", groups, err)
	}
	for _, name := range []string{"x", ""} {
		if _, err := GroupCalls(f, []uint32{1, 2}, name); err == nil {
			t.Errorf("there are groups by %q", name)
		}
	}
}

func TestValuesAreSaidAsTheirTypesAre(t *testing.T) {
	flags := map[int64]string{1: "A", 2: "B", 8: "D", -3: "NONE"}
	for _, c := range []struct {
		kind ArgumentKind
		bits uint64
		text string
		json any
	}{
		{ArgumentInt, math.MaxUint64, "-1", int64(-1)},
		{ArgumentUint, math.MaxUint64, "18446744073709551615", uint64(math.MaxUint64)},
		{ArgumentBool, 1, "true", true},
		{ArgumentBool, 7, "7", true},
		{ArgumentChar, 'x', "'x'", "'x'"},
		{ArgumentChar, '\n', `'\n'`, `'\n'`},
		{ArgumentChar, 0xFFFFFFFFFFFFFF80, `'\x80'`, `'\x80'`},
		{ArgumentEnum, 2, "B", "B"},
		{ArgumentEnum, 11, "A | B | D", "A | B | D"},
		{ArgumentEnum, 12, "12", "12"},
		{ArgumentEnum, ^uint64(2), "NONE", "NONE"},
		{ArgumentEnum, 0, "0", "0"},
		{ArgumentFloat, math.Float64bits(-0.1), "-0.1", -0.1},
		{ArgumentFloat, math.Float64bits(math.NaN()), "NaN", "NaN"},
		{ArgumentFloat32, uint64(math.Float32bits(0.1)), "0.1", 0.1},
		{ArgumentPointer, 0xDEAD, "0xdead", "0xdead"},
		{99, 5, "5", "5"},
	} {
		a := Argument{Kind: c.kind, Names: flags}
		v := Value{Bits: c.bits}
		if a.Text(v) != c.text || a.JSON(v) != c.json {
			t.Errorf("%d of kind %d is %q, %v, want %q, %v", c.bits, c.kind, a.Text(v), a.JSON(v), c.text, c.json)
		}
	}
	a := Argument{Kind: ArgumentBytes}
	if got := a.Text(Value{Bytes: []byte{0, 255}, Cut: true}); got != "00ff…" {
		t.Error(got)
	}
}

// A damaged chunk of values costs these values, and is told; the calls are there.
func TestDamagedValuesAreToldAndPassedOver(t *testing.T) {
	path := argumentsReel(t, 20000, ClockFull)
	data, _, err := mapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Parse("whole", slices.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	chunks := whole.threads[0].values
	if len(chunks) < 2 {
		t.Fatalf("%d chunks of values", len(chunks))
	}
	for at := 0; at < int(chunks[0].length); at += max(1, int(chunks[0].length)/50) {
		bad := slices.Clone(data)
		bad[int(chunks[0].offset)+frameSize+at] ^= 0x10
		f, err := Parse("bad", bad)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for r := f.Values(1); r.Next() != nil; {
			n++
		}
		lost := int(chunks[0].count)
		if all := 2*20000 - (20000+5)/11; n != all-lost || len(f.Damage()) == 0 {
			t.Errorf("byte %d: %d sets of %d are left, %d were in the chunk; damage %v", at, n, all, lost, f.Damage())
		}
	}
}

// FuzzValues reads what may be a chunk of values, and one that describes them.
func FuzzValues(f *testing.F) {
	b := appendArguments(nil, 7, true, []Argument{{Name: "n", Type: "int", Kind: ArgumentEnum, Names: map[int64]string{-1: "x"}}})
	f.Add(b)
	var c valueCoder
	f.Add(c.append(nil, &ValueSet{Number: 3, Function: 9, Time: 5, SP: 6, Values: []Value{{Bits: 1}, {Bytes: []byte("text")}, {State: ValueNull}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseArguments(data, 8)
		d, coder, set := fields{b: data}, valueCoder{}, ValueSet{}
		for range 100 {
			if coder.next(&d, &set) != nil {
				break
			}
			var again valueCoder
			again.append(nil, &set)
			for _, v := range set.Values {
				(&Argument{Kind: ArgumentKind(len(data)), Names: map[int64]string{2: "b"}}).Text(v)
			}
		}
	})
}
