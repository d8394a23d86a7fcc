package sampler

import (
	"testing"
	"time"

	"github.com/callreel/callreel/process"
)

// A visit is one step of a thread's life: a wait, at a time, that becomes the usual one
// or does not.
type visit struct {
	at      place
	after   time.Duration // since the detector began
	becomes bool
}

func TestUsualWaitIsTheOneThatAThreadComesToRestIn(t *testing.T) {
	outer, inner := uint64(0x9000), uint64(0x8000) // slots: the stack grows down
	loop := place{number: 232, sp: 0x8f00, slot: outer, back: 1, rest: eventRest}
	read := place{number: 0, sp: 0x7f00, slot: inner, back: 2, rest: maybeRest}
	poll := place{number: 7, sp: 0x7f00, slot: inner, back: 3, rest: eventRest}
	lock := place{number: 202, sp: 0x8f00, slot: outer, back: 4, rest: neverRest}
	handled := place{number: 232, sp: 0x7f00, slot: inner, back: 6, rest: eventRest, inside: true}
	again := loop
	again.sp, again.slot, again.inside = 0x7f00, inner, true
	const soon, late = time.Second, time.Minute
	for name, life := range map[string][]visit{
		"an event loop at once, whenever":                        {{loop, late, true}},
		"a worker at the start":                                  {{read, soon, true}},
		"what is met later has to be met again":                  {{read, late, false}, {read, late, true}},
		"a lock never":                                           {{lock, soon, false}, {lock, soon, false}, {lock, late, false}},
		"a loop takes the place of what a handler waited for":    {{read, soon, true}, {loop, late, true}},
		"an outer loop takes the place of an inner one":          {{poll, soon, true}, {loop, soon, false}, {loop, soon, true}},
		"a handler's wait is none, however often":                {{loop, soon, true}, {read, soon, false}, {read, soon, false}, {read, soon, false}, {read, soon, false}, {read, soon, false}, {read, soon, false}},
		"an inner loop is none, unless the outer is not seen":    {{loop, soon, true}, {poll, soon, false}, {poll, soon, false}, {poll, soon, false}, {poll, soon, false}, {poll, late, true}},
		"a handler's wait is none, though made for loops":        {{place{number: 0, slot: outer, back: 2, rest: maybeRest}, soon, true}, {handled, soon, false}, {handled, soon, false}, {handled, soon, false}, {handled, soon, false}},
		"a turn of the loop in a handler is none, ever":          {{loop, soon, true}, {again, late, false}, {again, late, false}, {again, late, false}, {again, late, false}, {again, late, false}, {again, late, false}},
		"a worker that begins to serve by an inner loop is seen": {{read, soon, true}, {place{number: 7, slot: inner - 64, back: 5, rest: eventRest}, soon, false}, {place{number: 7, slot: inner - 64, back: 5, rest: eventRest}, soon, false}, {place{number: 7, slot: inner - 64, back: 5, rest: eventRest}, soon, true}},
	} {
		begun := time.Now()
		h := habits{begun: begun}
		for k, v := range life {
			if got := h.meet(v.at, uint64(k), begun.Add(v.after)); got != v.becomes {
				t.Errorf("%s: visit %d: becomes the usual wait: %v", name, k, got)
			}
		}
	}
}

func TestSameCallIsKnownWhateverItsDepth(t *testing.T) {
	p := place{number: 230, pc: 1, sp: 0x8f00, back: 2, slot: 0x9000}
	for _, c := range []struct {
		change func(*place)
		want   bool
	}{
		{func(o *place) { o.sp, o.slot = 0x8e00, 0x8f00 }, true},
		{func(o *place) { o.number++ }, false},
		{func(o *place) { o.pc++ }, false},
		{func(o *place) { o.back++ }, false},
	} {
		o := p
		c.change(&o)
		if p.sameCall(&o) != c.want {
			t.Errorf("%+v and %+v: not %v", p, o, c.want)
		}
	}
	if unknown := (place{number: 230, pc: 1}); unknown.sameCall(&unknown) {
		t.Error("callers that are not known are the same")
	}
}

func TestThreadThatCannotRunIsNotAtRest(t *testing.T) {
	p := place{number: 232, sp: 1, pc: 2}
	a := process.Activity{State: 'S', Waiting: &process.Waiting{InSyscall: true, Number: 232, SP: 1, PC: 2}}
	if !p.holds(&a, nil) {
		t.Error("it waits there")
	}
	for _, state := range []byte{'T', 't'} {
		if a.State = state; p.holds(&a, nil) {
			t.Errorf("%c: it is stopped there", state)
		}
	}
}

func TestStayingIsNotComingAgain(t *testing.T) {
	begun := time.Now()
	h := habits{begun: begun}
	for range 100 {
		if h.meet(place{number: 45, sp: 1, rest: maybeRest}, 7, begun.Add(time.Hour)) {
			t.Fatal("one long wait for an answer is taken for the usual wait")
		}
	}
}

func TestPlacesThatAreRememberedAreBounded(t *testing.T) {
	begun := time.Now()
	h := habits{begun: begun}
	for k := range uint64(1000) {
		h.meet(place{number: 45, sp: 2 + k, rest: maybeRest}, k, begun.Add(time.Hour))
	}
	if len(h.places) > maxPlaces {
		t.Errorf("%d places", len(h.places))
	}
}
