package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// write makes a file and returns its path.
func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// makeReel writes a reel whose only thread calls each of the functions once, one inside the other: the first for 1 µs
// more than the second, and so on, the last for 1 µs. Ticks are nanoseconds.
func makeReel(t *testing.T, thread string, functions ...string) string {
	t.Helper()
	if thread == "" {
		return makeReelOf(t, functions, nil)
	}
	events := make([]reel.Event, 2*len(functions))
	for i := range functions {
		id, sp := uint32(i+1), uint32(0x10000-64*i)
		events[i] = reel.Entry(2000, sp, id)
		events[len(events)-1-i] = reel.Exit(2000+1000*uint64(len(functions)-i), sp, id)
	}
	return makeReelIn(t, thread, functions, events)
}

// makeReelOf writes a reel of one thread with the events given; without any it has no thread.
func makeReelOf(t *testing.T, functions []string, events []reel.Event) string {
	t.Helper()
	return makeReelIn(t, "main", functions, events)
}

func makeReelIn(t *testing.T, thread string, functions []string, events []reel.Event) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.reel")
	header := reel.Header{PID: 4242, Command: []string{"/bin/prog"}, Exe: "/bin/prog", Tool: "callreel test", Clock: madereel.Nanoseconds(1000)}
	w := madereel.Create(t, path, header, reel.Image{Path: "/bin/prog", ID: "c0ffee", Arch: "amd64"}, functions...)
	if events != nil {
		madereel.Thread(t, w, reel.Thread{TID: 77, Process: 4242, Name: thread}, events...)
	}
	realtest.Must(t, w.Close())
	return path
}

// emptyReel is one in which nothing was recorded.
func emptyReel(t *testing.T) string {
	t.Helper()
	return makeReel(t, "")
}

// damage returns a copy of the reel that what has changed.
func damage(t *testing.T, path string, what func([]byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile(path)
	realtest.Must(t, err)
	return write(t, t.TempDir(), "damaged.reel", what(data))
}

// cutEvents ends a reel in the middle of its events, which makeReel writes last before the index.
func cutEvents(t *testing.T, path string) string {
	t.Helper()
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	chunk := f.Chunks(f.Threads()[0].Key)[0]
	return damage(t, path, func(b []byte) []byte { return b[:chunk.Offset+48+int64(chunk.Bytes)/2] }) // 48: the chunk's frame
}
