package arm64

import (
	"math"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// goMarkSetups are markers of Go programs: what they carry, and how.
var goMarkSetups = map[string]stubSetup{
	"nothing":             {},
	"nothing, old":        {machine: oldMachine},
	"registers":           {captures: &stub.Captures{Entry: goRegisters().Entry}},
	"memory":              {captures: &stub.Captures{Entry: goMemory().Entry}},
	"memory, old":         {captures: &stub.Captures{Entry: goMemory().Entry}, machine: oldMachine},
	"constants":           {captures: &stub.Captures{Entry: goRegisters().Entry}, constant: &stub.Constant{Reg: x0, From: 1 << 40, Size: 1 << 12}},
	"constants, read":     {captures: &stub.Captures{Entry: goMemory().Entry}, constant: &stub.Constant{Reg: x0, From: 0x200000, Size: 0x10000}},
	"triggers":            {triggers: true},
	"constants, triggers": {captures: &stub.Captures{Entry: goMemory().Entry}, constant: &stub.Constant{Reg: x0, From: 0x200000, Size: 0x10000}, triggers: true},
}

func TestGoMarkersKeepWhatIsAlive(t *testing.T) {
	for name, s := range goMarkSetups {
		t.Run(name, func(t *testing.T) {
			s.chunks, s.marks = 16, &stub.Capture{}
			d := startGo(t, s)
			d.doDraining("state 300")
			d.do("state 300") // drops
			d.do("gate 0")
			d.do("state 20")
			d.do("gate 1")
			d.round()
			k, all := d.goroutines, 0
			for n, passed := range k.marks {
				all += passed
				if n == 0 || n > 9 {
					t.Errorf("%d marks of marker %d", passed, n)
				}
			}
			if all < 3000 || k.wrong != 0 || k.carried == 0 && s.captures != nil {
				t.Errorf("%d marks, %d with values, %d wrong", all, k.carried, k.wrong)
			}
		})
	}
}

// Of a marker that expects its title among the program's constants those with another title are marks of another marker.
func TestTitlesOfGoMarkersAreConstantsOrNot(t *testing.T) {
	const from, size = 1 << 40, 1 << 12
	s := stubSetup{ids: 1, marks: &stub.Capture{}, captures: &stub.Captures{Entry: goRegisters().Entry}, constant: &stub.Constant{Reg: x0, From: from, Size: size}}
	d := startGo(t, s)
	for _, title := range []uint64{from, from + 1, from + size - 1, from - 1, from + size, 0, 1 << 63} {
		d.do("keep 0 %d 1", title)
		d.round()
		if v := d.goroutines.marked; v[3].Bits != title {
			t.Errorf("%#x was passed, %#x is recorded", title, v[3].Bits)
		}
	}
	if k := d.goroutines.marks; k[1] != 3 || k[2] != 4 || len(k) != 2 {
		t.Errorf("%v", k)
	}
}

// A trigger on a marker's passing fires each time.
func TestGoMarkersFire(t *testing.T) {
	d, w, _ := goPredicateDriver(t, stubSetup{ids: 1, marks: &stub.Capture{}, triggers: true})
	w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1, High: math.MaxInt64})
	for n := range 5 {
		d.do("keep 0 1 1")
		if f, ok := w.Firing(uint32(n + 1)); int(w.Fired()) != n+1 || !ok || f.Word != word(ring.MarkID(1), false) || f.To < f.From {
			t.Fatalf("%d fired: %+v", w.Fired(), f)
		}
	}
	w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
}

// Functions of package mark pause the recording of a Go program, and let it go on; both are marks themselves.
func TestGoProgramsPauseAndGoOn(t *testing.T) {
	d := startGo(t, stubSetup{ids: 1, says: true})
	word := func() uint64 { return d.header(ring.PausedOff) }
	for range 3 {
		d.do("keep 0 1 1")
		if word() == 0 {
			t.Error("it isn't paused")
		}
		d.do("keep 1 1 1")
		if word() != 0 {
			t.Error("it is paused")
		}
	}
	d.round()
	if k := d.goroutines; k.marks[21] != 3 || k.marks[22] != 3 || k.wrong != 0 {
		t.Errorf("%+v", k)
	}
	d.do("gate 0")
	d.do("state 20")
	d.round()
	if n := d.drainer.Totals().Marks; n != 6 {
		t.Errorf("%d marks", n)
	}
}
