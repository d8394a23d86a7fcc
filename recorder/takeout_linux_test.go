package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Sites of any functions are taken out and put back, again and again, while a program that checks every register, every way of moving control
// and every exception runs, with signals: it finds nothing wrong, and its text is what was there before.
func TestSitesAreTakenOutAndPutBackWhileThreadsRun(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	for _, c := range []struct {
		name, target string
		flags, args  []string
		some         string // the count that must not be zero
	}{
		{name: "every register", target: "state", args: []string{"2"}, some: "calls"},
		{name: "the ABI", target: "abi", some: "signals"},
		{name: "the ABI, not optimized", target: "abi", flags: []string{"-O0"}, some: "signals"},
		{name: "exceptions", target: "cxx", args: []string{"2"}, some: "thrown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.target == "cxx" {
				realtest.Need(t, realtest.GXX)
			}
			p := realtest.Start(t, realtest.Build(t, c.target, c.flags...), c.args...)
			realtest.GiveWay(t, p.Pid())
			done := takenOut(t, p.Pid())
			if counts := p.Finish(); counts[c.some] == 0 {
				t.Errorf("%s is zero in %v", c.some, counts)
			}
			t.Logf("%d functions, %d sites in %d stops, %v at most", len(done.Functions), done.Sites, done.Stops, done.Longest)
			if done.Sites == 0 {
				t.Error("no site was taken out")
			}
		})
	}
}

// A recorder that is killed while it takes sites out, or puts them back, leaves a process in which each page is whole: it goes on, and detach
// puts all right.
func TestARecorderIsKilledWhileItTakesSitesOut(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	program, args, some, longest := "abi", []string(nil), "signals", 1500
	if runtime.GOARCH != "amd64" { // where processors are emulated, which takes longer
		program, args, some, longest = "state", []string{"2"}, "calls", 6000
	}
	p := realtest.Start(t, realtest.Build(t, program), args...)
	realtest.GiveWay(t, p.Pid())
	random := rand.New(rand.NewPCG(uint64(p.Pid()), 2))
	inside := 0
	for range 12 {
		cmd := taker(t, p.Pid())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pause := time.After(300*time.Millisecond + time.Duration(random.IntN(longest))*time.Millisecond)
		<-pause
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed, as a rule
		var d struct {
			Removed      int    `json:"removed"`
			TextVerified bool   `json:"text_verified"`
			Left         string `json:"left"`
		}
		out := realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(p.Pid()), "--json").Stdout
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.Removed > 0 && !d.TextVerified || d.Left != "" {
			t.Fatalf("%v: %s", err, out)
		}
		inside += d.Removed
	}
	if counts := p.Finish(); counts[some] == 0 || inside == 0 {
		t.Errorf("%v; what %d recorders left was removed", counts, inside)
	}
}

// takeOutPID tells this test program to be a recorder that takes sites of that process out and puts them back: the parent of a process can't
// trace it and learn how it ended, too.
const takeOutPID = "CALLREEL_TEST_TAKE_OUT"

func TestMain(m *testing.M) {
	pid, err := strconv.Atoi(os.Getenv(takeOutPID))
	if err != nil {
		os.Exit(m.Run())
	}
	done, err := takeOutAndPutBack(context.Background(), pid, 60)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(done)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// taker is a process that does so.
func taker(t *testing.T, pid int) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", takeOutPID, pid))
	return cmd
}

// takenOut lets it.
func takenOut(t *testing.T, pid int) (done target.TakenOut) {
	t.Helper()
	cmd := taker(t, pid)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &done)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return done
}

// takeOutAndPutBack records a process, and changes so many times which functions' sites are there.
func takeOutAndPutBack(ctx context.Context, pid, times int) (all target.TakenOut, err error) {
	dir, err := os.MkdirTemp("", "callreel-takeout-")
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := newRecording(Options{PID: pid, Output: filepath.Join(dir, "reel"), Lazy: Eager})
	defer r.Close()
	if err := r.attachTo(ctx, pid, nil); err != nil {
		return all, err
	}
	var ids []uint32
	for _, a := range r.s.Arenas {
		for i := range a.Fns {
			if target.CanTakeOut(&a.Fns[i]) {
				ids = append(ids, a.Fns[i].ID)
			}
		}
	}
	recording, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	var result *Result
	var runErr error
	running.Go(func() { result, runErr = r.run(recording) })
	random := rand.New(rand.NewPCG(uint64(pid), 1))
	var errs []error
	for range times {
		some := map[uint32]bool{}
		part := random.IntN(4)
		for _, id := range ids {
			if part == 0 || random.IntN(part+1) == 0 {
				some[id] = true
			}
		}
		change := r.s.PutBack
		if random.IntN(2) == 0 {
			change = r.s.TakeOut
		}
		d, err := change(ctx, some)
		errs = append(errs, err)
		all.Functions = append(all.Functions, d.Functions...)
		all.Sites, all.Stops, all.Longest = all.Sites+d.Sites, all.Stops+d.Stops, max(all.Longest, d.Longest)
		time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
	}
	end()
	running.Wait()
	if runErr == nil && (!result.TextVerified || result.Left != "") {
		runErr = fmt.Errorf("text verified: %v, left: %q", result.TextVerified, result.Left)
	}
	return all, errors.Join(append(errs, runErr)...)
}
