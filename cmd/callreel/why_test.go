package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/why"
)

// whyReel is a reel of 300 requests, of which every hundredth reads for 9 ms; as a dump, if it is one, of the last such.
func whyReel(t *testing.T, dump bool) string {
	const base, ms = 1_000_000_000, 1_000_000
	path := filepath.Join(t.TempDir(), "why.reel")
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(base), Arch: "amd64"}, reel.Image{Path: "/bin/prog"}, "handle\x1b[31m", "work", "read")
	realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true}))
	r := madereel.NewRun(base)
	var slow reel.Trigger
	for i := range 300 {
		start := r.Now
		r.Call(1, func() {
			r.Call(2, func() { r.Work(90_000 + uint64(i%7)*3_000) })
			if i%100 == 50 {
				r.Call(3, func() { r.Wait(9*ms, reel.WakerKernel) })
			}
		})
		if i == 250 {
			slow = reel.Trigger{Condition: "handle > 5ms", Function: 1, Thread: 1, Start: start + 70, End: r.Now + 70}
		}
		r.Wait(50_000, reel.WakerKernel)
	}
	r.Write(t, w, reel.Thread{TID: 77, Process: 70, Name: "worker-1"}, true)
	if dump {
		realtest.Must(t, w.Dump(reel.Dump{From: base, To: r.Now, Triggers: []reel.Trigger{slow}}))
	}
	realtest.Must(t, w.Close())
	return path
}

func TestWhySaysWhyACallWasSlow(t *testing.T) {
	path := whyReel(t, false)
	text := callreel("", "why", path, "-f", "handle*", "--slowest", "3")
	checkTerminalSafe(t, text.stdout)
	for _, want := range []string{"took 9.1", "of 297 others", "in read: where usual ones don't go", "blocked", "So are those of"} {
		if text.code != exitDone || !strings.Contains(text.stdout, want) {
			t.Errorf("no %q, code %d:\n%s%s", want, text.code, text.stdout, text.stderr)
		}
	}
	if n := strings.Count(text.stdout, "\n"); n > 20 {
		t.Errorf("%d lines", n)
	}
	var r why.Report
	realtest.Must(t, json.Unmarshal([]byte(callreel("", "why", path, "-f", "handle*", "--slowest", "3", "--json").stdout), &r))
	if len(r.Calls) != 3 || len(r.Groups) != 1 || len(r.Calls[0].Causes) != 1 {
		t.Fatalf("%+v", r)
	}
	c := r.Calls[0].Causes[0]
	if len(c.Path) != 1 || c.Path[0] != "read" || c.Kind != why.NewPath || c.State != "blocked" || c.ExcessNS < 8_900_000 || c.Calls != 1 || c.PeerCalls != 0 {
		t.Errorf("%+v", c)
	}
	one := callreel("", "why", path, "--call", r.Calls[1].ID, "--markdown")
	checkTerminalSafe(t, one.stdout)
	if one.code != exitDone || !strings.HasPrefix(one.stdout, "**handle") || !strings.Contains(one.stdout, "\n- ") {
		t.Errorf("code %d:\n%s%s", one.code, one.stdout, one.stderr)
	}
}

func TestWhyExplainsTheCallOfADump(t *testing.T) {
	if r := callreel("", "why", whyReel(t, true)); r.code != exitDone || !strings.Contains(r.stdout, "in read: where usual ones don't go") {
		t.Errorf("code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

func TestWhyRefusesWhatNamesNoCall(t *testing.T) {
	path := whyReel(t, false)
	for _, k := range []struct {
		code int
		args []string
	}{
		{exitUsage, nil}, {exitUsage, []string{"--slowest", "3"}}, {exitUsage, []string{"-f", "nothing"}}, {exitUsage, []string{"--call", "1:2"}},
		{exitUsage, []string{"--call", "1:2:3", "-f", "handle*"}}, {exitUsage, []string{"-f", "handle*", "--json", "--markdown"}},
		{exitUsage, []string{"-f", "handle*", "--slowest", "1000"}}, {exitFailed, []string{"--call", "1:2:3"}}, {exitFailed, []string{"-f", "handle*", "--over", "1h"}},
	} {
		if r := callreel("", append([]string{"why", path}, k.args...)...); r.code != k.code || r.stdout != "" {
			t.Errorf("%v: code %d, want %d: %s", k.args, r.code, k.code, r.stderr)
		}
	}
}
