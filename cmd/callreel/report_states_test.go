package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

const scheduledReason = "it isn't permitted"

// scheduledReel is a reel with two threads: one calls outer and in it inner, and waits there; the other makes no calls.
func scheduledReel(t *testing.T, s reel.Scheduling, fill func(w *reel.Writer, main, idle *reel.ThreadWriter)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scheduled.reel")
	header := reel.Header{PID: 4242, Exe: "/bin/prog", Tool: "callreel test", Arch: "amd64", Clock: madereel.Nanoseconds(0)}
	w := madereel.Create(t, path, header, reel.Image{Path: "/bin/prog", ID: "c0ffee", Arch: "amd64"}, "outer", "inner", "spins", "pthread_mutex_lock", "pthread_mutex_unlock")
	realtest.Must(t, w.Scheduling(s))
	main := madereel.Thread(t, w, reel.Thread{TID: 77, Process: 4242, Name: "main"},
		reel.Entry(16_000, 0x10000, 1), reel.Entry(32_000, 0xff00, 2), reel.Exit(96_000, 0xff00, 2),
		reel.Entry(100_000, 0xff00, 3), reel.Exit(110_000, 0xff00, 3), reel.Exit(112_000, 0x10000, 1))
	idle := madereel.Thread(t, w, reel.Thread{TID: 78, Process: 4242, Name: "idle"})
	fill(w, main, idle)
	w.SchedKnown(160_000)
	realtest.Must(t, w.ClockPair(160_000, 1_700_000_000_000_160_000))
	realtest.Must(t, w.Close())
	return path
}

// states are those of scheduledReel's threads.
func states(t *testing.T) func(w *reel.Writer, main, idle *reel.ThreadWriter) {
	return func(w *reel.Writer, main, idle *reel.ThreadWriter) {
		// inner runs from 32 to 48 µs and from 80 on, waits until 64, and is ready in between.
		new(madereel.States).Runs(8_000, 48_000).Woken(64_000, 78).Runs(80_000, 128_000).Fault(130_000, false).Fault(131_000, true).Write(t, main)
		new(madereel.States).Runs(16_000, 32_000).Write(t, idle)
	}
}

func TestReportSplitsSelfByStates(t *testing.T) {
	path := scheduledReel(t, reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}, states(t))
	a := callreel("", "report", path, "--json")
	r := realtest.DecodeExactly[promisedReport](t, a.stdout)
	if a.code != exitDone || len(r.Functions) != 3 || r.Scheduling == nil {
		t.Fatalf("code %d, stderr %q: %s", a.code, a.stderr, a.stdout)
	}
	if s := r.Scheduling; s.Source != "bpf" || !s.WakeUps || !s.Faults || *s.MinorFaults != 1 || *s.MajorFaults != 1 {
		t.Errorf("%+v", s)
	}
	outer, inner := r.Functions[0], r.Functions[1]
	if s := inner.FunctionStates; inner.Name != "inner" || s == nil || s.SelfCPUNS != 32_000 || s.SelfReadyNS != 16_000 || s.SelfBlockedNS != 16_000 || s.TotalBlockedNS != 16_000 || s.SelfUnknownNS != 0 {
		t.Errorf("inner: %+v", s)
	}
	if s := outer.FunctionStates; outer.Name != "outer" || s == nil || s.SelfCPUNS != outer.SelfNS || s.TotalCPUNS != 64_000 || s.TotalReadyNS != 16_000 || s.TotalBlockedNS != 16_000 {
		t.Errorf("outer: %+v", s)
	}
	if s := r.Threads[0].ThreadStatesJSON; s == nil || s.CPUNS != 88_000 || s.ReadyNS != 16_000 || *s.BlockedNS != 48_000 || *s.MajorFaults != 1 || s.KernelCPUNS != nil {
		t.Errorf("main: %+v", s)
	}
	if s := r.Threads[1].ThreadStatesJSON; s == nil || r.Threads[1].Calls != 0 || s.CPUNS != 16_000 || *s.BlockedNS != 128_000 {
		t.Errorf("the thread without calls: %+v", s)
	}
	text := callreel("", "report", path).stdout
	for _, want := range []string{
		"       calls   total    self     cpu   ready blocked     p50     p99     max  function\n",
		"           1 64.0 us 64.0 us 32.0 us 16.0 us 16.0 us",
		"88.0 us cpu  16.0 us ready  48.0 us blocked       77 main, 2 page faults, 1 from disk\n",
		"16.0 us cpu     0 ns ready   128 us blocked       78 idle\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "not known") {
		t.Errorf("all is known:\n%s", text)
	}
	for sort, first := range map[string]string{"cpu": "outer", "ready": "inner", "blocked": "inner"} {
		r := realtest.DecodeExactly[promisedReport](t, callreel("", "report", path, "--json", "--sort", sort).stdout)
		if sort != "cpu" && r.Functions[0].Name != first {
			t.Errorf("--sort %s: %s is first", sort, r.Functions[0].Name)
		}
	}
}

func TestReportSaysWhatIsNotKnownOfStates(t *testing.T) {
	// Nothing, the kernel's sums, and a part.
	none := scheduledReel(t, reel.Scheduling{Reason: scheduledReason}, func(*reel.Writer, *reel.ThreadWriter, *reel.ThreadWriter) {})
	sums := scheduledReel(t, reel.Scheduling{Source: "schedstat", Reason: scheduledReason}, func(_ *reel.Writer, main, _ *reel.ThreadWriter) {
		realtest.Must(t, main.SchedSums(reel.SchedSums{Running: 5_000_000, Ready: 7_000}))
	})
	part := scheduledReel(t, reel.Scheduling{Source: "perf", Reason: scheduledReason}, func(_ *reel.Writer, main, _ *reel.ThreadWriter) {
		new(madereel.States).Runs(8_000, 48_000).Lost(64_000).Runs(80_000, 128_000).Write(t, main)
	})
	for _, path := range []string{none, sums} {
		a := callreel("", "report", path, "--json")
		r := realtest.DecodeExactly[promisedReport](t, a.stdout)
		if r.Scheduling == nil || r.Scheduling.Reason != scheduledReason || r.Functions[0].FunctionStates != nil || strings.Contains(a.stdout, "self_cpu_ns") {
			t.Errorf("%s", a.stdout)
		}
		text := callreel("", "report", path).stdout
		if !strings.HasPrefix(text, "       calls      total       self        p50") || !strings.Contains(text, "When threads ran and waited isn't known: "+scheduledReason+"\n") {
			t.Errorf("%s", text)
		}
		if a := callreel("", "report", path, "--sort", "blocked"); a.code != exitUsage || !strings.Contains(a.stderr, scheduledReason) {
			t.Errorf("code %d: %s", a.code, a.stderr)
		}
	}
	r := realtest.DecodeExactly[promisedReport](t, callreel("", "report", sums, "--json").stdout)
	if s := r.Threads[0].ThreadStatesJSON; s == nil || s.CPUNS != 5_000_000 || s.ReadyNS != 7_000 || s.BlockedNS != nil || *s.KernelCPUNS != 5_000_000 {
		t.Errorf("%+v", s)
	}
	if text := callreel("", "report", sums).stdout; !strings.Contains(text, "5.00 ms cpu  7.00 us ready        - blocked       77 main\n") {
		t.Errorf("%s", text)
	}
	r = realtest.DecodeExactly[promisedReport](t, callreel("", "report", part, "--json").stdout)
	if s := r.Functions[1].FunctionStates; s.SelfUnknownNS != 32_000 || s.SelfCPUNS != 32_000 {
		t.Errorf("%+v", s)
	}
	if s := r.Threads[0].ThreadStatesJSON; s.UnknownNS != 32_000 {
		t.Errorf("%+v", s)
	}
	text := callreel("", "report", part).stdout
	if !strings.Contains(text, "% of the time of threads: state not known\n") || !strings.Contains(text, "from being woken to running counts as blocked") {
		t.Errorf("%s", text)
	}
}

// lockReel is a reel whose second thread waits for a mutex which the first one has in outer.
func lockReel(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "locks.reel")
	header := reel.Header{PID: 4242, Exe: "/bin/prog", Tool: "callreel test", Arch: "amd64", Clock: madereel.Nanoseconds(0)}
	w := madereel.Create(t, path, header, reel.Image{Path: "/bin/prog", ID: "c0ffee", Arch: "amd64", Base: 0x400000, End: 0x500000, Slide: 0x400000}, "holds", "works", "wants", "pthread_mutex_lock", "pthread_mutex_unlock")
	realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true}))
	holder := madereel.Thread(t, w, reel.Thread{TID: 77, Process: 4242, Name: "main"},
		reel.Entry(16_000, 0x10000, 1), reel.Entry(32_000, 0xff00, 2), reel.Exit(976_000, 0xff00, 2), reel.Entry(990_000, 0xff00, 5), reel.Exit(1_010_000, 0xff00, 5), reel.Exit(1_020_000, 0x10000, 1))
	waiter := madereel.Thread(t, w, reel.Thread{TID: 78, Process: 4242, Name: "other"},
		reel.Entry(80_000, 0x10000, 3), reel.Entry(96_000, 0xff00, 4), reel.Exit(1_024_000, 0xff00, 4), reel.Exit(1_040_000, 0x10000, 3))
	new(madereel.States).Runs(8_000, 1_100_000).Write(t, holder)
	new(madereel.States).Runs(8_000, 160_000).Woken(1_000_000, 77).Runs(1_008_000, 1_100_000).Write(t, waiter)
	realtest.Must(t, waiter.Waits([]reel.Wait{{Time: 160_000, Syscall: 202, Args: [3]uint64{0x401040, 128, 2}}}))
	w.SchedKnown(1_100_000)
	realtest.Must(t, w.Close())
	return path
}

func TestReportOfLocksNamesWhoHeldThem(t *testing.T) {
	path := lockReel(t)
	a := callreel("", "report", path, "--locks", "--json")
	r := realtest.DecodeExactly[struct {
		Locks []lockJSON `json:"locks"`
	}](t, a.stdout)
	if a.code != exitDone || len(r.Locks) != 1 {
		t.Fatalf("code %d, %s: %s", a.code, a.stderr, a.stdout)
	}
	l := r.Locks[0]
	if l.Address != "0x401040" || l.Name != "prog+0x1040" || l.Kind != "mutex" || l.Waits != 1 || l.WaitNS != 840_000 || l.MaxWaitNS != 840_000 || l.Threads != 1 || len(l.Holders) != 1 {
		t.Fatalf("%+v", l)
	}
	if h := l.Holders[0]; h.Function != "holds" || h.Module != "prog" || h.NS != 840_000 || len(h.In) != 1 || h.In[0] != "works" {
		t.Errorf("%+v", h)
	}
	text := callreel("", "report", path, "--locks").stdout
	for _, want := range []string{
		"         1  840.00 us  840.00 us  mutex      0x401040 (prog+0x1040), 1 thread\n",
		"            840.00 us                          prog!holds, in works\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, path := range []string{makeReel(t, "main", "a"), scheduledReel(t, reel.Scheduling{Source: "bpf", WakeUps: true}, states(t))} {
		if a := callreel("", "report", path, "--locks"); a.code != exitDone || !strings.Contains(a.stdout, "known") {
			t.Errorf("code %d: %s", a.code, a.stdout)
		}
		if a := callreel("", "report", path, "--locks", "--json"); a.code != exitDone || strings.TrimSpace(a.stdout) != `{"locks":[]}` {
			t.Errorf("code %d: %s", a.code, a.stdout)
		}
	}
	if a := callreel("", "report", path, "--locks", "-f", "x"); a.code != exitUsage {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
}
