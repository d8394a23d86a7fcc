package recorder_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A program without a C library has no thread pointer, and threads that nothing in their memory tells apart: each call is
// recorded, in the thread that made it, also when the process is attached to once more.
func TestAProgramWithoutAThreadPointerIsRecorded(t *testing.T) {
	needLive(t)
	bare := realtest.Build(t, "bare")
	for mode, threads := range map[string]int{"one": 1, "threads": 3} {
		t.Run(mode, func(t *testing.T) {
			const calls = 200_000
			p := realtest.Start(t, bare, mode, "200000")
			cycle(t, p.Pid())
			r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-f", "leaf")...)
			p.Say("")
			p.WaitLine("counted")
			s := stop(t, r)
			if want := int64(calls * threads); s.Calls != want || s.Dropped != 0 {
				t.Errorf("%d calls, %d dropped, want %d", s.Calls, s.Dropped, want)
			}
			rep := reportOf(t, r.File)
			for _, thread := range rep.Threads {
				if thread.Calls != calls {
					t.Errorf("thread %d made %d calls, want %d", thread.TID, thread.Calls, calls)
				}
			}
			if len(rep.Threads) != threads {
				t.Errorf("%d threads, want %d", len(rep.Threads), threads)
			}
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}

// It is recorded from its entry point on when callreel starts it, with its children if they are followed.
func TestAProgramWithoutAThreadPointerIsRecordedFromItsEntryOn(t *testing.T) {
	needLive(t)
	bare := realtest.Build(t, "bare")
	for mode, times := range map[string]int64{"one": 1, "child": 2} {
		t.Run(mode, func(t *testing.T) {
			file := t.TempDir() + "/bare.reel"
			cmd := exec.Command(realtest.CallreelPath(t), "record", "--follow", "--lossless", "-o", file, "--", bare, mode, "30000")
			cmd.Stdin = strings.NewReader("\n")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "bare ok") {
				t.Fatalf("%v\n%s", err, out)
			}
			rep := reportOf(t, file)
			if n := rep.Report.Calls("leaf"); n != 30000*times {
				t.Errorf("%d calls of leaf, want %d", n, 30000*times)
			}
			if n := rep.Report.Calls("begin"); n != 1 {
				t.Errorf("%d calls of begin, want 1", n)
			}
		})
	}
}

// A process with no function that is known is told so, with what would help; and so is who leaves out all.
func TestAProcessWithoutKnownFunctionsIsToldWhatToDo(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "bare", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-s"))
	refuse(t, p.Pid(), 3, []string{"no function to record", "neither symbols nor call frame information", "--found=no", "without stripping"}, "--found=no")
	wantUntouched(t, p.Pid())
	p.Finish()
	p = realtest.Start(t, realtest.Build(t, "bare"))
	refuse(t, p.Pid(), 3, []string{"no function to record", "-x and --min-size leave out all"}, "-x", "*")
	wantUntouched(t, p.Pid())
	p.Finish()
}

// One thread without a thread pointer beside others that have one is told apart as well, and comes to no harm.
func TestAThreadWithoutAThreadPointerBesideOthersIsRecorded(t *testing.T) {
	needLive(t)
	const calls = 50_000
	p := realtest.Start(t, realtest.Build(t, "pointerless"), "50000")
	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-f", "leaf")...)
	p.Say("")
	p.WaitLine("counted")
	s := stop(t, r)
	if s.Calls != 2*calls || s.Dropped != 0 {
		t.Errorf("%d calls, %d dropped, want %d", s.Calls, s.Dropped, 2*calls)
	}
	for _, thread := range reportOf(t, r.File).Threads {
		if thread.Calls != calls {
			t.Errorf("thread %d made %d calls, want %d", thread.TID, thread.Calls, calls)
		}
	}
	wantUntouched(t, p.Pid())
	p.Finish()
}

// Threads that have their IDs in descriptors, as with Android's C library, are told apart by those; and by the kernel while they are changed.
func TestThreadsAreToldByTheirDescriptors(t *testing.T) {
	needLive(t)
	const calls = 100_000
	for name, flags := range map[string][]string{"": nil, "follow": {"--follow"}} {
		t.Run(name, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "bare", "-DDESCRIBED"), "descriptors", "100000")
			cycle(t, p.Pid())
			r := realtest.StartRecording(t, slices.Concat(pidFlag(p), flags, []string{"--lossless", "-f", "leaf"})...)
			p.Say("")
			p.WaitLine("counted")
			s := stop(t, r)
			if s.Calls != 3*calls+1000 || s.Dropped != 0 {
				t.Errorf("%d calls, %d dropped, want %d", s.Calls, s.Dropped, 3*calls+1000)
			}
			threads := reportOf(t, r.File).Threads
			for _, thread := range threads {
				want := int64(calls)
				if thread.TID == p.Pid() {
					want += 1000
				}
				if thread.Calls != want {
					t.Errorf("thread %d made %d calls, want %d", thread.TID, thread.Calls, want)
				}
			}
			if len(threads) != 3 {
				t.Errorf("%d threads", len(threads))
			}
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}
