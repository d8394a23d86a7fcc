package ring

import (
	"reflect"
	"testing"

	"github.com/callreel/callreel/reel"
)

func TestMarksAreTakenOutWithWhatTheyCarry(t *testing.T) {
	mark := func(n uint32) reel.Event { return reel.Event{Word: MarkID(n) << 1} }
	run := []reel.Event{reel.Entry(1, 9, 1), mark(1), mark(2), reel.Exit(4, 9, 1), mark(3)}
	payloads := []Payload{{0, []byte("a")}, {2, []byte("b")}, {3, []byte("c")}}
	var m Marks
	calls, with, marks, own := m.Split(run, payloads)
	if !reflect.DeepEqual(calls, []reel.Event{reel.Entry(1, 9, 1), reel.Exit(4, 9, 1)}) || !reflect.DeepEqual(with, []Payload{{0, []byte("a")}, {1, []byte("c")}}) {
		t.Errorf("%+v with %+v", calls, with)
	}
	if len(marks) != 3 || MarkOf(marks[0].Word) != 1 || MarkOf(marks[2].Word) != 3 || !reflect.DeepEqual(own, []Payload{{1, []byte("b")}}) {
		t.Errorf("%+v with %+v", marks, own)
	}
}

func TestWordsOfMarksAreNoOthers(t *testing.T) {
	id, _ := reel.Switch(1, 1<<40).Goroutine()
	for _, w := range []uint32{reel.Entry(0, 0, 1).Word, reel.Exit(0, 0, 1<<29-1).Word, PayloadWord, wordOfPayload(3), reel.Switch(1, id).Word, 0} {
		if IsMark(w) {
			t.Errorf("%#x is a mark's", w)
		}
	}
	for _, n := range []uint32{1, MaxMarks - 1} {
		if w := MarkID(n) << 1; !IsMark(w) || !IsMarkID(MarkID(n)) || MarkOf(w) != n || isPayload(w) {
			t.Errorf("%d: %#x", n, w)
		}
	}
}

func wordOfPayload(n uint32) uint32 { return PayloadWord | n<<PayloadIndexShift | 5<<PayloadCountShift }

// An entry in front of a mark can't be taken back any more.
func TestWhatIsInFrontOfAMarkIsFinal(t *testing.T) {
	mark := reel.Event{Word: MarkID(1) << 1}
	for _, c := range []struct {
		run  []reel.Event
		want int
	}{
		{[]reel.Event{reel.Entry(1, 1, 1), mark}, 2},
		{[]reel.Event{reel.Entry(1, 1, 1), mark, {Word: PayloadWord}, reel.Entry(1, 1, 2)}, 3},
		{[]reel.Event{reel.Entry(1, 1, 1), reel.Entry(1, 1, 2)}, 0},
	} {
		if got := final(c.run); got != c.want {
			t.Errorf("%d of %+v", got, c.run)
		}
	}
}

// In a Go program what says which goroutine goes on is among the marks as well, and stays among the others.
func TestMarksComeWithTheirGoroutines(t *testing.T) {
	mark := func(n uint32) reel.Event { return reel.Event{Word: MarkID(n) << 1} }
	run := func() []reel.Event {
		return []reel.Event{reel.Switch(1, 7), mark(1), reel.Entry(2, 9, 1), reel.Switch(3, 1<<40), mark(2)}
	}
	m := Marks{Goroutines: true}
	calls, _, marks, own := m.Split(run(), []Payload{{4, []byte("b")}})
	if !reflect.DeepEqual(marks, []reel.Event{reel.Switch(1, 7), mark(1), reel.Switch(3, 1<<40), mark(2)}) || !reflect.DeepEqual(own, []Payload{{3, []byte("b")}}) {
		t.Errorf("%+v with %+v", marks, own)
	}
	if !reflect.DeepEqual(calls, []reel.Event{reel.Switch(1, 7), reel.Entry(2, 9, 1), reel.Switch(3, 1<<40)}) {
		t.Errorf("%+v", calls)
	}
	m.Goroutines = false
	if _, _, marks, _ := m.Split(run(), nil); len(marks) != 2 {
		t.Errorf("%+v", marks)
	}
}
