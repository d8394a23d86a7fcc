package reel

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestStackTopsAreKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tops.reel")
	w, err := Create(name, testHeader, Options{})
	realtest.Must(t, err)
	for i := range 2 {
		tw, err := w.Thread(Thread{TID: 1 + i})
		realtest.Must(t, err)
		realtest.Must(t, tw.Append([]Event{Entry(5, base, 1), Exit(9, base, 1)}))
	}
	want := []uint32{0, 16, 0x10000000, 0xffffffff}
	realtest.Must(t, w.StackTops(2, want))
	realtest.Must(t, w.Close())
	f, err := Open(name)
	realtest.Must(t, err)
	defer f.Close()
	if got := f.StackTops(2); !slices.Equal(got, want) || f.StackTops(1) != nil || f.StackTops(3) != nil || len(f.Damage()) != 0 {
		t.Errorf("%x, want %x; damage %v", got, want, f.Damage())
	}
}

func TestHostileStackTops(t *testing.T) {
	for _, test := range []struct {
		name    string
		payload []byte
		count   uint32
	}{
		{"too many", make([]byte, maxTops+1), maxTops + 1},
		{"fewer than said", []byte{1, 2}, 3},
		{"the same twice", []byte{1, 0}, 2},
		{"beyond 32 bits", appendUvarint([]byte{1}, 1<<32-1), 2},
		{"wrapped around", appendUvarint([]byte{1}, 1<<64-1), 2},
	} {
		if tops, err := parseTops(test.payload, test.count); err == nil {
			t.Errorf("%s: %x", test.name, tops)
		}
	}
}

// Neighbours' calls are counted alike whether it is said where stacks begin or learned, but for those that it is learned from.
func TestSummaryOfNeighbours(t *testing.T) {
	s := newScheduler(3)
	s.throws = 30
	for i := range 20 {
		s.add(uint32(0x10000000 + i*64<<10))
	}
	for i := range 4000 {
		s.run(s.stacks[i%20])
	}
	var p Pairer
	p.Push(s.events)
	for _, known := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "neighbours.reel")
		w, err := Create(name, testHeader, Options{})
		realtest.Must(t, err)
		_, err = w.AddFunctions(make([]Function, 20))
		realtest.Must(t, err)
		tw, err := w.Thread(Thread{TID: 1})
		realtest.Must(t, err)
		realtest.Must(t, tw.Append(s.events))
		if known {
			realtest.Must(t, w.StackTops(1, p.Tops()))
		}
		realtest.Must(t, w.Close())
		f, err := Open(name)
		realtest.Must(t, err)
		sum := Summarize(f, SummaryOptions{})
		f.Close()
		self := uint64(0)
		for _, fn := range sum.Functions {
			self += fn.Self
			if fn.Self > fn.Total {
				t.Errorf("tops known %v: function %d: self %d, total %d", known, fn.ID, fn.Self, fn.Total)
			}
			if fn.ID == 2 && fn.Implicit > 20 || known && fn.ID <= 2 && fn.Implicit > 0 {
				t.Errorf("tops known %v: %d of %d calls of function %d seem not to have returned", known, fn.Implicit, fn.Calls, fn.ID)
			}
		}
		if most := f.Clock().Nanoseconds(s.now); self > most {
			t.Errorf("tops known %v: self of all is %d in %d", known, self, most)
		}
	}
}
