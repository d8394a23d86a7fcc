package reel

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestTimelineIsKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "timeline.reel")
	w, err := Create(name, testHeader, Options{})
	realtest.Must(t, err)
	tw, err := w.Thread(Thread{TID: 1})
	realtest.Must(t, err)
	realtest.Must(t, tw.Append(newProgram(1, 10).run(100)))
	realtest.Must(t, w.Flush())
	want := bytes.Repeat([]byte("what is to be seen "), 100)
	realtest.Must(t, w.Timeline(want))
	for _, closed := range []bool{false, true} {
		if closed {
			realtest.Must(t, w.Close())
		}
		data, err := os.ReadFile(name)
		realtest.Must(t, err)
		f, err := Parse("whole", data)
		realtest.Must(t, err)
		got, err := f.Timeline()
		if err != nil || !bytes.Equal(got, want) || f.Closed() != closed {
			t.Fatalf("closed %v: %d bytes, %v", f.Closed(), len(got), err)
		}
		data[bytes.Index(data, want)+7] ^= 1
		if f, err = Parse("damaged", data); err != nil || f.Events() != 100 || len(f.Damage()) != 0 {
			t.Fatalf("%v, %d events, damage %v", err, f.Events(), f.Damage())
		}
		if got, err = f.Timeline(); err == nil || got != nil || len(f.Damage()) != 1 {
			t.Errorf("a damaged timeline: %d bytes, %v, damage %v", len(got), err, f.Damage())
		}
	}
}

func TestPairerGoesOnFromAState(t *testing.T) {
	events := newProgram(3, 40).run(3000)
	for i := range events { // some calls on another stack, some whose exit is missing
		if i%97 == 0 {
			events[i].SP += 0x10000000
		}
	}
	pair := func(p *Pairer, out *[]Call, events []Event) {
		p.OnCall = func(c *Call) { *out = append(*out, *c) }
		for i := range events {
			if i%500 == 499 {
				p.Lost()
			}
			p.Push(events[i : i+1])
		}
	}
	var whole Pairer
	var want []Call
	pair(&whole, &want, events)
	for cut := 500; cut < 3000; cut += 500 {
		var a, b Pairer
		var got []Call
		pair(&a, &got, events[:cut])
		b.SetState(a.State(nil))
		if b.Open() != a.Open() {
			t.Fatalf("%d calls are open, want %d", b.Open(), a.Open())
		}
		pair(&b, &got, events[cut:])
		if !slices.Equal(got, want) {
			t.Fatalf("cut at %d: other calls", cut)
		}
	}
}
