package reel

import (
	"bytes"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

var testDump = Dump{
	From: 1500, To: 8000,
	Triggers: []Trigger{
		{Kind: TriggerCall, Condition: "work > 20ms", Function: 2, Thread: 1, Start: 2000, End: 5000, SP: 0xfff0},
		{Kind: TriggerCall, Condition: "work > 20ms", Detail: "bytes \xff", Function: 2, Thread: 2, Start: 3000, SP: 0xffe0},
		{Kind: TriggerEnd, Detail: "signal SIGSEGV"},
	},
	Missing: []Missing{{From: 1500, To: 1600}, {Thread: 2, From: 1600, To: math.MaxUint64}},
}

func TestDumpIsReadBackByIndexAndByScan(t *testing.T) {
	for _, early := range []bool{true, false} {
		w, name := create(t, testHeader)
		if early {
			realtest.Must(t, w.Dump(testDump))
		}
		tw := addThread(t, w, Thread{TID: 1})
		realtest.Must(t, tw.Append([]Event{Entry(1200, 100, 1), Entry(2000, 90, 2), Exit(5000, 90, 2)}))
		realtest.Must(t, tw.Flush())
		realtest.Must(t, w.ClockPair(9000, 1_700_000_000_000_008_000)) // read when it was written, after its window
		if !early {
			realtest.Must(t, w.Dump(testDump))
		}
		if err := w.Dump(testDump); err == nil || !strings.Contains(err.Error(), "before") {
			t.Errorf("a second time: %v", err)
		}
		realtest.Must(t, w.Close())
		data, err := os.ReadFile(name)
		realtest.Must(t, err)
		for _, cut := range []int{0, 1} { // without the last byte the index is of no use
			f, err := Parse(name, data[:len(data)-cut])
			realtest.Must(t, err)
			if f.Closed() != (cut == 0) {
				t.Errorf("cut by %d: closed is %v", cut, f.Closed())
			}
			if d, ok := f.Dump(); !ok || !reflect.DeepEqual(d, testDump) {
				t.Errorf("cut by %d: read %+v (%v)", cut, d, ok)
			}
			if first, last := f.FirstTick(), f.LastTick(); first != 1200 || last != testDump.To {
				t.Errorf("cut by %d: the recording is from %d to %d", cut, first, last)
			}
		}
	}
}

func TestReelThatIsNoDump(t *testing.T) {
	w, name := create(t, testHeader)
	realtest.Must(t, w.Close())
	if d, ok := open(t, name).Dump(); ok {
		t.Errorf("is %+v", d)
	}
}

func TestDumpTakesMoreFieldsThanItKnows(t *testing.T) {
	b := appendTagged(appendDump(nil, &testDump), 99, 7)
	trigger := append([]byte{byte(TriggerStall), 0, 0, 0, 0, 5, 0, 0}, "more, of a later version"...)
	b = append(append(appendUvarint(b, tagTrigger), byte(len(trigger))), trigger...)
	got, err := parseDump(b)
	realtest.Must(t, err)
	if n := len(testDump.Triggers); len(got.Triggers) != n+1 || !reflect.DeepEqual(got.Triggers[n], Trigger{Kind: TriggerStall, Start: 5}) {
		t.Errorf("triggers are %+v", got.Triggers)
	}
}

func TestDamagedDumpGivesWhatPrecedes(t *testing.T) {
	whole := appendDump(nil, &testDump)
	for n := range whole {
		d, err := parseDump(whole[:n])
		if len(d.Triggers) > 3 || len(d.Triggers) < 3 && len(d.Missing) > 0 {
			t.Fatalf("cut to %d: %+v", n, d)
		}
		for i := range d.Triggers {
			if d.Triggers[i] != testDump.Triggers[i] {
				t.Fatalf("cut to %d: trigger %+v", n, d.Triggers[i])
			}
		}
		if again := appendDump(nil, &d); err == nil && len(again) < n {
			t.Fatalf("cut to %d: no error, though only %d bytes were read", n, len(again))
		}
	}
}

func TestTicksOfTriggers(t *testing.T) {
	d := Dump{From: 10, To: 100}
	tests := []struct {
		trigger Trigger
		want    uint64
		open    bool
	}{
		{Trigger{Function: 1, Start: 20, End: 50}, 30, false},
		{Trigger{Function: 1, Start: 5}, 95, true},
		{Trigger{Function: 1, Start: 200}, 0, true},
		{Trigger{Function: 1, Start: 50, End: 20}, 0, false},
		{Trigger{Kind: TriggerEnd}, 0, false},
	}
	for _, test := range tests {
		if got := d.Ticks(&test.trigger); got != test.want || test.trigger.Open() != test.open {
			t.Errorf("%+v took %d, want %d", test.trigger, got, test.want)
		}
	}
}

func FuzzDump(f *testing.F) {
	f.Add(appendDump(nil, &testDump))
	f.Add(appendDump(nil, &Dump{}))
	f.Add([]byte{tagTrigger, 9, 200, 4, 0, 0, 0, 0, 0, 0, 0, tagMissing, 3, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseDump(data)
		if 8*len(d.Triggers)+3*len(d.Missing) > len(data) {
			t.Errorf("%d triggers and %d missing stretches out of %d bytes", len(d.Triggers), len(d.Missing), len(data))
		}
		for i := range d.Triggers {
			d.Ticks(&d.Triggers[i])
		}
		if err != nil {
			return
		}
		b := appendDump(nil, &d)
		again, err := parseDump(b)
		if err != nil || !bytes.Equal(appendDump(nil, &again), b) {
			t.Errorf("written again: %v", err)
		}
	})
}
