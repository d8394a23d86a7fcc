// Package madereel writes small reels by hand, for tests of what reads them.
package madereel

import (
	"testing"

	"github.com/callreel/callreel/reel"
)

// Nanoseconds is a clock whose ticks are nanoseconds, and which starts at base.
func Nanoseconds(base uint64) reel.Clock {
	return reel.Clock{TicksPerSecond: 1e9, BaseTick: base, BaseUnixNS: 1_700_000_000_000_000_000}
}

// Create begins a reel of one image with these functions, whose IDs are from 1 on. The caller closes it.
func Create(t testing.TB, path string, h reel.Header, image reel.Image, functions ...string) *reel.Writer {
	t.Helper()
	w, err := reel.Create(path, h, reel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddImage(image)
	if err != nil {
		t.Fatal(err)
	}
	const each = 64 // bytes
	table := make([]reel.Function, len(functions))
	for i, name := range functions {
		table[i] = reel.Function{Name: name, Image: id, Addr: uint64(0x1000 + each*i), Size: each, Tier: reel.TierExitSite}
	}
	if len(table) > 0 {
		if _, err := w.AddFunctions(table); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Thread adds a thread with these events; more can be appended.
func Thread(t testing.TB, w *reel.Writer, thread reel.Thread, events ...reel.Event) *reel.ThreadWriter {
	t.Helper()
	tw, err := w.Thread(thread)
	if err == nil {
		err = tw.Append(events)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tw
}
