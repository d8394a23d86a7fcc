package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
	"github.com/callreel/callreel/why"
)

// The page's answer has all that callreel why says, and its causes lead to where they are.
func TestPageSaysWhyAsTheVerbDoes(t *testing.T) {
	const ms = 1_000_000
	path := filepath.Join(t.TempDir(), "slow.reel")
	w := madereel.Create(t, path, reel.Header{PID: 7, Arch: "amd64", Clock: madereel.Nanoseconds(1)}, reel.Image{Path: "/usr/bin/made"}, "handle", "lookup", "render")
	var events []reel.Event
	call := func(at, sp uint32, took uint64, function uint32, now *uint64, inside func()) {
		events = append(events, reel.Entry(*now, sp, function))
		*now += took / 2
		if inside != nil {
			inside()
		}
		*now += took - took/2
		events = append(events, reel.Exit(*now, sp, function))
		*now += uint64(at)
	}
	now, slow := uint64(ms), uint64(0)
	for i := range 60 {
		lookups := 3
		if i == 40 {
			lookups, slow = 400, now
		}
		call(ms/2, 0x10000, uint64(200_000+1000*i), 1, &now, func() {
			for range lookups {
				call(100, 0xff00, 90_000, 2, &now, nil)
			}
			call(100, 0xff00, 150_000, 3, &now, nil)
		})
	}
	madereel.Thread(t, w, reel.Thread{TID: 7, Process: 7, Name: "main"}, events...)
	realtest.Must(t, w.Close())
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	x, err := explainCall(t.Context(), f, viewer.CallID{Thread: 1, Start: slow, Function: 1})
	realtest.Must(t, err)
	r, err := why.Explain(t.Context(), f, why.Options{Call: &why.CallID{Thread: 1, Start: slow, Function: 1}, Name: demangle.Name})
	realtest.Must(t, err)
	var said []string
	causes := 0
	for _, l := range x.Lines {
		said = append(said, l.Text)
		if l.Kind == "cause" {
			causes++
			if l.Thread != 1 || l.To <= l.From || !strings.Contains(l.Text, "lookup") {
				t.Errorf("%+v", l)
			}
		}
	}
	if got, want := strings.Join(strings.Fields(strings.Join(said, " ")), " "), strings.Join(strings.Fields(r.Text()), " "); got != want {
		t.Errorf("the page says\n%s\nthe verb\n%s", got, want)
	}
	if causes == 0 || x.Lines[0].Kind != "head" {
		t.Errorf("%+v", x.Lines)
	}
	if x.Peer == nil || x.Peer.Function != 1 || x.Peer.Start == slow {
		t.Errorf("the peer is %+v", x.Peer)
	}
	if _, err := explainCall(t.Context(), f, viewer.CallID{Thread: 1, Start: slow + 1, Function: 1}); err == nil {
		t.Error("a call that there isn't was explained")
	}
}
