package ring

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

// A thread that is switched off and on again, in the middle of calls: what it wrote while it was on comes out, and of the calls that
// began before no exit does.
func TestAThreadIsSwitchedOffAndOn(t *testing.T) {
	for _, min := range []uint64{0, 1} {
		m := newMemory(t, 8)
		first := &collected{}
		d := NewDrainer(m, func(int, int, string) (Sink, error) { return first, nil })
		d.Min = min
		d.TakesBack = d.Min != 0
		p := &producer{m, 5}
		p.register("worker")
		write := func(events ...reel.Event) {
			for _, e := range events {
				p.event(e)
			}
		}
		before := []reel.Event{reel.Entry(1, 0x900, 1), reel.Entry(2, 0x800, 2), reel.Entry(3, 0x700, 3), reel.Exit(4, 0x700, 3)}
		write(before...)
		if err := d.Off(5); err != nil { // before it was met: nothing happens
			t.Fatal(err)
		}
		mustRound(t, d)
		if err := d.Off(5); err != nil {
			t.Fatal(err)
		}
		write(reel.Entry(5, 0x700, 4), reel.Exit(6, 0x700, 4)) // on its way
		mustRound(t, d)
		second := &collected{}
		if err := d.On(5, second); err != nil {
			t.Fatal(err)
		}
		after := []reel.Event{reel.Entry(8, 0x700, 6), reel.Exit(9, 0x700, 6)}
		write(slices.Concat([]reel.Event{reel.Exit(7, 0x800, 2)}, after, []reel.Event{reel.Exit(10, 0x900, 1)})...)
		if err := d.Finish(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(first.events, before) || !slices.Equal(second.events, after) {
			t.Errorf("at least %d ticks: first %v, then %v", min, first.events, second.events)
		}
		want := Totals{Events: uint64(len(before) + len(after)), Entries: 4, Threads: 1, AtOnce: 1}
		if d.Totals() != want {
			t.Errorf("%+v, want %+v", d.Totals(), want)
		}
		wantFree(t, m, 8)
	}
}

// Of a thread that is off from the beginning nothing comes out, nor is it counted.
func TestAThreadWithoutASinkIsOff(t *testing.T) {
	m := newMemory(t, 8)
	d := NewDrainer(m, func(int, int, string) (Sink, error) { return nil, nil })
	p := &producer{m, 5}
	p.register("worker")
	for range 3 * ChunkEvents {
		p.event(reel.Entry(1, 2, 3))
	}
	mustRound(t, d)
	if d.Totals() != (Totals{AtOnce: 1}) || *m.u32(SlotsOff + 5*SlotSize + SlotRegistered) != registeredOff {
		t.Errorf("%+v", d.Totals())
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	wantFree(t, m, 8)
}
