package reel

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// newOffReel begins a reel with so many functions.
func newOffReel(t *testing.T, functions int) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "off.reel")
	w, err := Create(path, Header{Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1}}, Options{})
	realtest.Must(t, err)
	_, err = w.AddFunctions(make([]Function, functions))
	realtest.Must(t, err)
	return w, path
}

// Whatever the order in which times are told, each function has them in order, joined where they touch; what is told again counts as told last.
func TestTimesOffComeBack(t *testing.T) {
	tests := []struct {
		name string
		told [][]Off
		want []Off
	}{
		{"none", [][]Off{nil}, nil},
		{"by function and time", [][]Off{{{2, 50, 60, 0}, {1, 70, 80, 4}}, {{1, 10, 20, 3}}}, []Off{{1, 10, 20, 3}, {1, 70, 80, 4}, {2, 50, 60, 0}}},
		{"overlapping, touching and contained", [][]Off{{{1, 10, 20, 1}, {1, 15, 30, 2}, {1, 30, 40, 4}, {1, 32, 35, 8}, {1, 41, 50, 0}}}, []Off{{1, 10, 40, 15}, {1, 41, 50, 0}}},
		{"with its end told later", [][]Off{{{1, 10, 0, 0}, {2, 10, 0, 0}}, {{1, 10, 20, 7}}, {{3, 90, 100, 0}}}, []Off{{1, 10, 20, 7}, {2, 10, 100, 0}, {3, 90, 100, 0}}},
		{"told with more calls", [][]Off{{{1, 10, 20, 7}}, {{1, 10, 25, 9}}}, []Off{{1, 10, 25, 9}}},
		{"twice in one list", [][]Off{{{1, 10, 20, 7}, {1, 10, 20, 9}, {2, 10, 20, 1}}}, []Off{{1, 10, 20, 9}, {2, 10, 20, 1}}},
		{"an instant, and one up to the last tick", [][]Off{{{1, 5, 5, 0}, {2, 1 << 62, 1 << 63, math.MaxUint64}}}, []Off{{1, 5, 5, 0}, {2, 1 << 62, 1 << 63, math.MaxUint64}}},
		{"of functions that the reel doesn't have", [][]Off{{{1, 5, 6, 0}, {9, 5, 6, 0}, {MaxID, 5, 6, 0}}}, []Off{{1, 5, 6, 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, path := newOffReel(t, 8)
			for _, list := range test.told {
				realtest.Must(t, w.Off(list))
			}
			f := reopen(t, w, path)
			if got := f.Offs(); !reflect.DeepEqual(append([]Off{}, got...), append([]Off{}, test.want...)) {
				t.Errorf("%v, want %v", got, test.want)
			}
			if len(f.Damage()) > 0 {
				t.Errorf("damage: %v", f.Damage())
			}
		})
	}
}

func TestImpossibleTimesOffAreRefused(t *testing.T) {
	w, path := newOffReel(t, 1)
	for _, o := range []Off{{0, 1, 2, 0}, {MaxID + 1, 1, 2, 0}, {1, 5, 4, 0}} {
		if err := w.Off([]Off{o}); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	realtest.Must(t, w.Off([]Off{{1, 4, 5, 0}}))
	if n := len(reopen(t, w, path).Offs()); n != 1 {
		t.Errorf("%d times, want that which was possible", n)
	}
}

// Thousands of functions that go off and come back together take little more than a byte each, whatever order they come in.
func TestTimesOffAreCompact(t *testing.T) {
	const functions = 5000
	w, path := newOffReel(t, functions)
	before := w.Stats().Bytes
	var list []Off
	for at := uint64(1); at <= 4; at++ {
		for id := uint32(functions); id > 0; id-- {
			list = append(list, Off{id, at * 1e9, at*1e9 + 5e8, 0})
		}
	}
	realtest.Must(t, w.Off(list))
	if bytes := w.Stats().Bytes - before; bytes > int64(len(list))*11/10 {
		t.Errorf("%d times take %d bytes", len(list), bytes)
	}
	if got := reopen(t, w, path).Offs(); len(got) != len(list) || got[0] != (Off{1, 1e9, 15e8, 0}) || got[len(got)-1] != (Off{functions, 4e9, 45e8, 0}) {
		t.Errorf("%d of %d times", len(got), len(list))
	}
}

// A reel without an index, and one that is still being written, tell the same.
func TestTimesOffAndBudgetAreReadWithoutAnIndex(t *testing.T) {
	w, path := newOffReel(t, 3)
	realtest.Must(t, w.Off([]Off{{1, 10, 20, 0}, {2, 10, 0, 0}}))
	realtest.Must(t, w.Budget(Budget{Wanted: 0.02}))
	realtest.Must(t, w.ClockPair(500, 5))
	live, err := Open(path)
	realtest.Must(t, err)
	defer live.Close()
	if got, want := live.Offs(), []Off{{1, 10, 20, 0}, {2, 10, 500, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("while it is written: %v, want %v", got, want)
	}
	realtest.Must(t, w.Off([]Off{{2, 10, 600, 0}}))
	realtest.Must(t, w.Budget(Budget{Wanted: 0.02, Measured: 0.017}))
	realtest.Must(t, w.Close())
	data, err := os.ReadFile(path)
	realtest.Must(t, err)
	f, err := Parse("cut", data[:len(data)-3])
	realtest.Must(t, err)
	if got, want := f.Offs(), []Off{{1, 10, 20, 0}, {2, 10, 600, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("without the index: %v, want %v", got, want)
	}
	if b, ok := f.Budget(); !ok || b.Measured != 0.017 {
		t.Errorf("without the index: %+v", b)
	}
}

func TestBudgetComesBack(t *testing.T) {
	w, path := newOffReel(t, 1)
	if _, ok := open(t, path).Budget(); ok {
		t.Error("a budget that nobody has told")
	}
	want := Budget{Wanted: 0.02, Measured: -0.001, Uncertainty: 0.003, CallsShare: 0.06, TimeShare: 0.89, FunctionsOff: 412, SitesRemoved: 900}
	realtest.Must(t, w.Budget(Budget{Wanted: 0.5, Measured: 3}))
	realtest.Must(t, w.Budget(want))
	nan, inf := math.NaN(), math.Inf(1)
	for _, b := range []Budget{{Wanted: nan}, {Wanted: -1}, {Measured: inf}, {Measured: nan}, {Uncertainty: -0.1}, {Uncertainty: nan}, {CallsShare: nan}, {CallsShare: 1.1}, {TimeShare: -0.1}, {TimeShare: nan}} {
		if err := w.Budget(b); err == nil {
			t.Errorf("%+v was taken", b)
		}
		realtest.Must(t, w.put(frame{kind: KindBudget, count: 1}, appendBudget(make([]byte, frameSize), &b))) // from a writer that doesn't check
	}
	f := reopen(t, w, path)
	if got, ok := f.Budget(); got != want || !ok {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(f.Damage()) != 10 {
		t.Errorf("%d places are damaged, want 10", len(f.Damage()))
	}
}

func TestTimesOffAreSummedUp(t *testing.T) {
	w, path := newOffReel(t, 3)
	realtest.Must(t, w.Off([]Off{{1, 100, 200, 1000}, {1, 300, 400, 10}, {2, 0, 50, 3}, {3, 150, 150, 0}}))
	f := reopen(t, w, path)
	if got, want := f.OffIn(150, 320), []OffSum{{1, 2, 70, 502}, {3, 1, 0, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := SumOffs(f.OffsOf(2), 60, 70); got != (OffSum{}) {
		t.Errorf("%+v of what wasn't off", got)
	}
	if got := f.OffsOf(7); len(got) > 0 {
		t.Errorf("%+v of what there isn't", got)
	}
}

// A chunk that lies costs what is behind the lie, and is told.
func TestDamagedTimesOff(t *testing.T) {
	tests := []struct {
		name    string
		count   uint32
		payload []byte
		want    int
	}{
		{"whole", 2, []byte{10, 11, 4, 1, 1}, 2},
		{"fewer than said", 3, []byte{10, 11, 4, 1, 1}, 2},
		{"a group of none", 1, []byte{10, 11, 0, 1, 1}, 0},
		{"a group of more than there are", 1, []byte{10, 11, 4, 1, 1}, 0},
		{"a function twice", 2, []byte{10, 11, 4, 1, 0}, 0},
		{"a group behind a good one", 3, []byte{10, 11, 4, 1, 1, 5, 5, 2, 0}, 2},
		{"cut in the estimates", 2, []byte{10, 11, 5, 1, 1, 7}, 2},
		{"past the last tick", 1, append(appendUvarint([]byte{10}, math.MaxUint64), 2, 1), 0},
		{"empty", 1, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, path := newOffReel(t, 8)
			realtest.Must(t, w.put(frame{kind: KindOffs, count: test.count}, append(make([]byte, frameSize), test.payload...)))
			f := reopen(t, w, path)
			if got := f.Offs(); len(got) != test.want {
				t.Errorf("%v, want %d", got, test.want)
			}
			if damaged := len(f.Damage()) > 0; damaged != (test.name != "whole") {
				t.Errorf("damage: %v", f.Damage())
			}
		})
	}
}

// Whatever a file says of functions that were off and of a budget, what is read is in order, within the bytes that it came in, and a number.
func FuzzOffs(f *testing.F) {
	chunk := func(kind ChunkKind, count uint32, payload []byte) []byte {
		b := append(make([]byte, frameSize), payload...)
		x := frame{kind: kind, count: count}
		x.put(b, payload)
		return b
	}
	head := chunk(KindHeader, 1, appendHeader(nil, &Header{Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1}}))
	functions := appendUvarint(nil, 1)
	for range 100 {
		functions = appendFunction(functions, &Function{})
	}
	good, count, _ := appendOffs(nil, []Off{{1, 10, 0, 0}, {2, 10, 20, 0}, {3, 10, 20, 5}, {1, 30, 40, 0}})
	budget := appendBudget(nil, &Budget{Wanted: 0.02, Measured: 0.017, CallsShare: 0.5, TimeShare: 0.5})
	f.Add(good, count, []byte{10, 11, 4, 1, 1}, uint32(2), budget)
	f.Add([]byte{255, 255, 3, 0, 255, 1}, uint32(1<<31), good, count, []byte{1, 8, 255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, a []byte, countA uint32, b []byte, countB uint32, budget []byte) {
		data := bytes.Join([][]byte{head, chunk(KindFunctions, 100, functions), chunk(KindOffs, countA, a), chunk(KindOffs, countB, b), chunk(KindBudget, 1, budget)}, nil)
		r, err := Parse("fuzz", data)
		realtest.Must(t, err)
		list := r.Offs()
		if len(list) > len(a)+len(b) {
			t.Fatalf("%d times of %d bytes", len(list), len(a)+len(b))
		}
		for i, o := range list {
			if o.Function == 0 || o.Function > 100 || o.To < o.From {
				t.Fatalf("%+v", o)
			}
			if i > 0 && (list[i-1].Function > o.Function || list[i-1].Function == o.Function && list[i-1].To >= o.From) {
				t.Fatalf("%+v behind %+v", o, list[i-1])
			}
		}
		r.OffIn(r.FirstTick(), r.LastTick())
		if b, ok := r.Budget(); ok && b.check() != nil {
			t.Fatal(b.check())
		}
	})
}
