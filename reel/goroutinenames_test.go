package reel

import (
	"maps"
	"testing"
)

func TestGoroutinesHaveTheNamesThatTheyGiveThemselves(t *testing.T) {
	for _, goroutines := range []bool{true, false} {
		w, name := create(t, Header{Goroutines: goroutines, Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1}})
		text := []Argument{{Name: "name", Type: "string", Kind: ArgumentString}}
		first, err := w.AddMarkers([]Marker{
			{Provider: "callreel", Name: "thread_name", Title: "goroutine name", Kind: MarkInstant, Arguments: text, TitleArg: -1, IDArg: -1, ValueArg: 0},
			{Provider: "app", Name: "thread_name", Kind: MarkInstant, Arguments: text, TitleArg: -1, IDArg: -1, ValueArg: 0},
		})
		if err != nil {
			t.Fatal(err)
		}
		tw, err := w.Thread(Thread{TID: 7})
		if err != nil {
			t.Fatal(err)
		}
		say := func(marker uint32, goroutine uint64, v Value) Mark {
			return Mark{Time: 5, Marker: marker, Goroutine: goroutine, Values: []Value{v}}
		}
		if err := tw.Marks([]Mark{say(first, 3, Value{Bytes: []byte("first")}), say(first, 4, Value{Bytes: []byte("other")}), say(first, 3, Value{Bytes: []byte("last")}),
			say(first+1, 5, Value{Bytes: []byte("another's")}), say(first, 6, Value{State: ValueUnreadable}), say(first, 0, Value{Bytes: []byte("nobody")})}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		want := map[uint64]string{3: "last", 4: "other"}
		if !goroutines {
			want = nil
		}
		if got := f.GoroutineNames(); !maps.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		f.Close()
	}
}
