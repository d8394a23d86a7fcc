package reel

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestBlocksAreTheChunk(t *testing.T) {
	w, name := create(t, testHeader)
	tw := addThread(t, w, Thread{TID: 1})
	realtest.Must(t, tw.Append(newProgram(1, 50).run(10_000)))
	realtest.Must(t, w.Close())
	f := open(t, name)
	c := f.Chunks(1)[0]
	want, err := f.Decode(c, nil)
	realtest.Must(t, err)
	var got []Event
	bufs := [2][]Event{make([]Event, 300), make([]Event, 77)}
	blocks := 0
	realtest.Must(t, f.DecodeBlocks(c, bufs[0], func(events []Event) []Event {
		got = append(got, events...)
		blocks++
		return bufs[blocks%2]
	}))
	if !slices.Equal(got, want) || blocks < len(want)/300 {
		t.Errorf("%d blocks of %d events, want %d", blocks, len(got), len(want))
	}
	got = got[:0]
	realtest.Must(t, f.DecodeBlocks(c, bufs[0], func(events []Event) []Event {
		got = append(got, events...)
		return nil
	}))
	if !slices.Equal(got, want[:300]) {
		t.Errorf("%d events of a block that was to be the last", len(got))
	}

	data, err := os.ReadFile(name)
	realtest.Must(t, err)
	data = bytes.Clone(data)
	data[c.Offset+frameSize+int64(c.Bytes)/2] ^= 1
	bad, err := Parse("damaged", data)
	realtest.Must(t, err)
	err = bad.DecodeBlocks(bad.Chunks(1)[0], bufs[0], func([]Event) []Event {
		t.Error("a block of a damaged chunk")
		return nil
	})
	if err == nil || len(bad.Damage()) != 1 {
		t.Errorf("%v, damage %v", err, bad.Damage())
	}
}
