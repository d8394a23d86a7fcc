package export

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/reel"
)

// part is a file of a split export.
type part struct {
	bytes.Buffer
	closed bool
}

func (p *part) Close() error { p.closed = true; return nil }

// splitParts writes the reel in files of a size, each of which must hold by itself.
func splitParts(t *testing.T, f *reel.File, size int64) []chromeFile {
	t.Helper()
	var parts []*part
	err := ChromeSplit(context.Background(), f, size, func(n int) (io.WriteCloser, error) {
		if n != len(parts)+1 || n > 1 && !parts[n-2].closed {
			t.Fatalf("part %d follows part %d, which may be open", n, len(parts))
		}
		parts = append(parts, &part{})
		return parts[n-1], nil
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var files []chromeFile
	for _, p := range parts {
		if !p.closed || int64(p.Len()) > size {
			t.Errorf("a part has %d bytes, closed: %v", p.Len(), p.closed)
		}
		file := chromeFile{text: p.Bytes()}
		if err := json.Unmarshal(p.Bytes(), &file); err != nil {
			t.Fatal(err)
		}
		checkNesting(t, file)
		files = append(files, file)
	}
	return files
}

// checkParts shows every fifth file to Chrome's trace viewer.
func checkParts(t *testing.T, files []chromeFile) {
	t.Helper()
	var names []string
	for n := 0; n < len(files); n += 5 {
		names = append(names, filepath.Join(t.TempDir(), "part.json"))
		if err := os.WriteFile(names[len(names)-1], files[n].text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for n, trace := range catapult(t, names...) {
		calls, _ := callTimes(files[5*n])
		s := seenByCatapult(trace)
		for _, e := range files[5*n].Events {
			if e.Ph == "B" && e.Args["continued"] != nil {
				calls[e.Name]++
			}
		}
		for name, want := range calls {
			if s.calls[name] != int64(want) || len(trace.Warnings) > 0 {
				t.Errorf("Chrome's trace viewer finds %d of %d calls of %s in part %d and warns: %q", s.calls[name], want, name, 5*n+1, trace.Warnings)
			}
		}
	}
}

// callTimes sums up calls and their times by name over files; a call that goes on in the next file counts once.
func callTimes(files ...chromeFile) (calls map[string]int, ns map[string]int64) {
	calls, ns = map[string]int{}, map[string]int64{}
	for _, file := range files {
		for _, e := range file.Events {
			at := int64(*e.TS*1000 + 0.5)
			switch {
			case e.Ph == "B":
				ns[e.Name] -= at
				if e.Args["continued"] == nil {
					calls[e.Name]++
				}
			case e.Ph == "E":
				ns[e.Name] += at
			}
		}
	}
	return calls, ns
}

func TestChromeSplitGivesFilesThatHoldByThemselvesAndTogetherAreTheWhole(t *testing.T) {
	f := record(t, reel.ClockFull, manyNames(), func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, manyCalls(12_000)...)
		appendTo(t, w, reel.Thread{TID: 2, Name: "u"}, manyCalls(8_000)...)
	})
	files := splitParts(t, f, 100<<10)
	if len(files) < 10 {
		t.Fatalf("%d files", len(files))
	}
	calls, ns := callTimes(files...)
	wantCalls, wantNS := callTimes(export(t, f, Options{}))
	if !maps.Equal(calls, wantCalls) {
		t.Errorf("calls %v, want %v", calls, wantCalls)
	}
	for name, want := range wantNS {
		// At each border the ends and begins of open calls take a nanosecond each.
		if got := ns[name]; got > want || want-got > int64(len(files)*4000) {
			t.Errorf("%s took %d ns, want %d", name, got, want)
		}
	}
	last := -1.0
	for n, file := range files {
		from, to, lanes := 1e18, 0.0, map[int]bool{}
		for _, e := range file.Events {
			if e.Ph == "B" || e.Ph == "E" {
				from, to = min(from, *e.TS), max(to, *e.TS)
				lanes[e.TID] = true
			}
		}
		if from < last-0.1 { // the ends of one lane take some nanoseconds, in which another has gone on
			t.Errorf("file %d begins at %v, the one before ends at %v", n+1, from, last)
		}
		last = to
		if n < 5 && len(lanes) != 2 {
			t.Errorf("file %d has the threads %v", n+1, lanes)
		}
		if want := n < len(files)-1; file.Other["continued"] != want {
			t.Errorf("file %d of %d: %v", n+1, len(files), file.Other)
		}
	}
	checkParts(t, files)
}

// Calls that are open all the time take more than a file's size: the files are larger, but not without number.
func TestChromeSplitWithDeepStacksComesToAnEnd(t *testing.T) {
	var events []reel.Event
	for i := range 2000 {
		events = append(events, reel.Entry(uint64(2000+i), uint32(base-16*i), uint32(1+i%40)))
	}
	for i := range 2000 {
		sp := uint32(base - 16*2000)
		events = append(events, reel.Entry(uint64(9000+10*i), sp, 1), reel.Exit(uint64(9005+10*i), sp, 1))
	}
	f := record(t, reel.ClockFull, manyNames(), func(w *reel.Writer) { appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, events...) })
	count := 0
	err := ChromeSplit(context.Background(), f, 64<<10, func(int) (io.WriteCloser, error) { count++; return &part{}, nil }, Options{})
	if err != nil || count > 30 {
		t.Errorf("%d files, %v", count, err)
	}
}
