package recorder_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// loggedTarget is a target that keeps a log of its calls in a file, which it maps.
type loggedTarget struct {
	*realtest.Proc
	log string
}

func startLogged(t *testing.T, name string) loggedTarget {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	return loggedTarget{realtest.Start(t, realtest.Build(t, name), log), log}
}

// loggedCall is a call as the target itself saw it, or as a dump has it: the target's times are from before and behind it.
type loggedCall struct {
	function string
	from, to uint64
}

// readLog reads the log of so many workers' calls, by thread, in the target's order; room is how many calls each keeps at the
// most. They are of functions by their numbers.
func (l *loggedTarget) readLog(t *testing.T, workers int, room uint64, functions []string) map[int][]loggedCall {
	t.Helper()
	const size, page = 24, 4096
	f, err := os.Open(l.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 16*workers)
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	all := map[int][]loggedCall{}
	for w := range workers {
		tid, made := int(le.Uint64(head[8*w:])), min(le.Uint64(head[8*(workers+w):]), room)
		b := make([]byte, made*size)
		if _, err := f.ReadAt(b, page+int64(uint64(w)*room*size)); err != nil {
			t.Fatal(err)
		}
		for ; len(b) > 0; b = b[size:] {
			all[tid] = append(all[tid], loggedCall{functions[le.Uint64(b[16:])], le.Uint64(b), le.Uint64(b[8:])})
		}
	}
	return all
}

// recordCounted records all of a target that counts its calls, from before them on, and returns what was recorded with the reel.
func recordCounted(t *testing.T, target string, args, flags []string) (summary, string) {
	t.Helper()
	p := realtest.Start(t, target, args...)
	r := realtest.StartRecording(t, append(append(pidFlag(p), "--lossless"), flags...)...)
	wantProbed(t, p.Pid())
	p.Go()
	p.WaitLine("counted")
	s := stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	return s, r.File
}

// killRecording begins to record a process, and kills the recorder.
func killRecording(t *testing.T, p interface{ Pid() int }) {
	t.Helper()
	r := realtest.StartRecording(t, pidFlag(p)...)
	r.Signal(os.Kill)
	r.Wait()
	if err := textAsFile(p.Pid()); err == nil {
		t.Fatal("nothing was left: this test tests nothing")
	}
}
