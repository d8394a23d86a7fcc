package process

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// functionIn returns where a function is in the process: one of a mapped file whose path has part in it.
func functionIn(t testing.TB, p *Process, part, name string) uint64 {
	t.Helper()
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Offset != 0 || !strings.Contains(m.Path, part) {
			continue
		}
		f, err := elf.Open(m.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		symbols, _ := f.DynamicSymbols()
		more, _ := f.Symbols()
		for _, s := range append(symbols, more...) {
			if s.Name == name && s.Value != 0 && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
				if f.Type == elf.ET_EXEC {
					return s.Value
				}
				return m.Start + s.Value
			}
		}
	}
	t.Fatalf("no function %s in %s", name, part)
	return 0
}

// invokeOn calls a function on one thread.
func invokeOn(t testing.TB, p *Process, tid int, call Invocation) (got *Returned, err error) {
	t.Helper()
	then := call.Returned
	call.Returned = func(r Returned) {
		if got = &r; then != nil {
			then(r)
		}
	}
	if call.Timeout == 0 {
		call.Timeout = time.Minute
	}
	if call.Room == 0 {
		call.Room = 64 << 10
	}
	eachErr := p.EachThread(context.Background(), StopOptions{Timeout: time.Minute}, []int{tid}, func(thread *Thread, stopErr error) error {
		if err = stopErr; err == nil {
			err = thread.Invoke(context.Background(), call)
		}
		return nil
	}, nil)
	if eachErr != nil {
		t.Fatal(eachErr)
	}
	return got, err
}

func TestInvokingOnEveryThreadGoesUnnoticed(t *testing.T) {
	needInvoke(t)
	t.Parallel()
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	errno := functionIn(t, p, "/libc.", "__errno_location")
	gettid, made, unfit := functionIn(t, p, "/libc.", "gettid"), 0, 0
	rounds := 60
	if testing.Short() { // an emulator takes half a second a call
		rounds = 6
	}
	for range rounds {
		for _, info := range must(p.Threads()) {
			r, err := invokeOn(t, p, info.TID, Invocation{Function: gettid, ErrnoLocation: errno})
			switch {
			case errors.Is(err, ErrNotInvoked):
				unfit++
			case err != nil:
				t.Fatal(err)
			case r.Integer[0] != uint64(info.TID):
				t.Fatalf("gettid in thread %d returned %d", info.TID, r.Integer[0])
			default:
				made++
			}
		}
	}
	t.Logf("%d calls, %d threads unfit", made, unfit)
	if text := g.finish(); !unnoticed(text) {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
	if made < 15*rounds {
		t.Errorf("only %d calls were made", made)
	}
}

// playInvoke has each thread in turn call a function, for ever.
func playInvoke(p *Process, args []string) int {
	function, err := strconv.ParseUint(args[0], 0, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Println("ready")
	for {
		infos, err := p.Threads()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		var tids []int
		for _, info := range infos {
			tids = append(tids, info.TID)
		}
		err = p.EachThread(context.Background(), StopOptions{Timeout: 10 * time.Second}, tids, func(thread *Thread, err error) error {
			if err != nil {
				return err
			}
			call := Invocation{Function: function, Arguments: list(integer(1000), text("a"), double(2)), Timeout: 10 * time.Second, Room: 64 << 10}
			if err := thread.Invoke(context.Background(), call); !errors.Is(err, ErrNotInvoked) {
				return err
			}
			return nil
		}, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

func TestAThreadComesBackFromAFunctionWhoseCallerWasKilled(t *testing.T) {
	needInvoke(t)
	t.Parallel()
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	sent := killOften(t, g, "invoke", 200, hexAddr(functionIn(t, p, "/libc.", "usleep")))
	wantWhole(t, g, sent)
}

func integer(v int64) Argument      { return Argument{Value: uint64(v)} }
func double(v float64) Argument     { return Argument{Value: math.Float64bits(v), Float: true} }
func text(s string) Argument        { return Argument{Data: append([]byte(s), 0)} }
func single(v float32) Argument     { return Argument{Value: uint64(math.Float32bits(v)), Float: true} }
func list(a ...Argument) []Argument { return a }

func TestArgumentsAndResultsAreThoseOfTheABI(t *testing.T) {
	needInvoke(t)
	g := startTarget(t, build(t, "invoke.c", "gcc"))
	p := openTarget(t, g)
	for _, c := range []struct {
		function  string
		arguments []Argument
		want      func(Returned) bool
	}{
		{"eight", list(integer(-1), integer(2), integer(3), integer(4), text("five5"), integer(6), integer(7), text("eighthhh")),
			func(r Returned) bool { return int64(r.Integer[0]) == -1+20+300+4000+50000+600000+7000000+80000000 }},
		{"mixed", list(double(1.5), integer(4), double(1), single(8)), func(r Returned) bool { return math.Float64frombits(r.Float[0]) == 6.125 }},
		{"nine", list(double(1), double(2), double(3), double(4), double(5), double(6), double(7), double(8), double(9)),
			func(r Returned) bool { return math.Float64frombits(r.Float[0]) == 285 }},
		{"extended", nil, func(r Returned) bool { return r.X87 == [10]byte{7: 0xc0, 8: 0xff, 9: 0x3f} }},
		{"changes", nil, func(r Returned) bool { return int32(r.Integer[0]) == -1 }},
		{"naps", list(integer(1)), func(r Returned) bool { return int32(r.Integer[0]) == 42 }},
	} {
		r, err := invokeOn(t, p, g.pid(), Invocation{
			Function: functionIn(t, p, "/invoke", c.function), Arguments: c.arguments, ErrnoLocation: functionIn(t, p, "/libc.", "__errno_location"),
		})
		if err != nil || r == nil || !c.want(*r) {
			t.Errorf("%s returned %+v, %v", c.function, r, err)
		}
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestAFunctionThatFailsIsPutBack(t *testing.T) {
	needInvoke(t)
	g := startTarget(t, build(t, "invoke.c", "gcc"))
	p := openTarget(t, g)
	fails := functionIn(t, p, "/invoke", "fails")
	for how, want := range []error{ErrFunctionFault, ErrFunctionFault, ErrFunctionFault, ErrFunctionEnds, ErrFunctionEnds} {
		_, err := invokeOn(t, p, g.pid(), Invocation{Function: fails, Arguments: list(integer(int64(how)))})
		if !errors.Is(err, want) {
			t.Errorf("fails(%d): %v", how, err)
		}
		var fault *FunctionFaultError
		if how == 0 && (!errors.As(err, &fault) || fault.Signal != int(unix.SIGSEGV) || fault.Address != 16) {
			t.Errorf("fails(0): %v", err)
		}
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestOverdueCallsArePutBackOrLeft(t *testing.T) {
	needInvoke(t)
	g := startTarget(t, build(t, "invoke.c", "gcc"))
	p := openTarget(t, g)
	for _, c := range []struct {
		function  string
		arguments []Argument
		answers   []OverdueAction
		want      error
	}{
		{"spins", nil, []OverdueAction{PutBack}, ErrPutBack},
		{"naps", list(integer(3600_000)), []OverdueAction{PutBack}, ErrPutBack},
		{"naps", list(integer(3600_000)), []OverdueAction{AskAgain, AskAgain, PutBack}, ErrPutBack},
		{"reads", nil, []OverdueAction{AskAgain, LeaveThere}, ErrLeftInFunction},
	} {
		asked := 0
		_, err := invokeOn(t, p, g.pid(), Invocation{
			Function: functionIn(t, p, "/invoke", c.function), Arguments: c.arguments, Timeout: 20 * time.Millisecond,
			Overdue: func(thread *Thread) Overdue {
				if _, err := thread.Regs(); err != nil {
					t.Error(err)
				}
				asked++
				return Overdue{Do: c.answers[asked-1], After: 10 * time.Millisecond}
			},
		})
		if !errors.Is(err, c.want) || asked != len(c.answers) {
			t.Errorf("%s: asked %d times, %v", c.function, asked, err)
		}
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestAWaitGoesOnForWhatIsLeftOfIt(t *testing.T) {
	needInvoke(t)
	const ms = 1500
	anew := runtime.GOARCH == "arm64" // whose kernel keeps what is left only of threads that stay where they are
	g := startTarget(t, build(t, "invoke.c", "gcc"), strconv.Itoa(ms))
	p := openTarget(t, g)
	getpid := functionIn(t, p, "/libc.", "getpid")
	for range 20 {
		r, err := invokeOn(t, p, g.pid(), Invocation{Function: getpid})
		if err != nil || r.Integer[0] != uint64(g.pid()) || r.WaitsAnew != anew {
			t.Fatalf("getpid: %+v, %v", r, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	var result, took int
	fields := strings.Fields(g.line())
	if len(fields) == 2 {
		result, _ = strconv.Atoi(fields[0])
		took, _ = strconv.Atoi(fields[1])
	}
	// The calls came after about a second: had the sleep begun anew it would last a second longer.
	if result != 0 || took < ms || took > ms+900 && !anew {
		t.Errorf("nanosleep of %d ms returned %d after %d ms", ms, result, took)
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestAFunctionMayLeaveByAJump(t *testing.T) {
	needInvoke(t)
	g := startTarget(t, build(t, "invoke.c", "gcc"))
	p := openTarget(t, g)
	waitForState(t, g.pid(), 'S')                                                                 // the line has left its buffer
	call := Invocation{Function: functionIn(t, p, "/invoke", "leaves"), Timeout: 5 * time.Second} // what it prints tells sooner
	if _, err := invokeOn(t, p, g.pid(), call); !errors.Is(err, ErrFunctionLeft) {
		t.Error(err)
	}
	status, err := p.Status()
	if err != nil || status.SigBlocked != 0 {
		t.Errorf("signals %#x are blocked, %v", status.SigBlocked, err)
	}
	if text := g.finish(); text != "jumped\nok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestFiltersAreObeyedByWhatIsInvoked(t *testing.T) {
	needInvoke(t)
	if !HasCapability(unix.CAP_SYS_ADMIN) {
		realtest.NeedThat(t, "CAP_SYS_ADMIN, to read filters", os.ErrPermission)
	}
	for state, want := range map[string]error{
		"memfd-kills": ErrFunctionEnds, "memfd-fails": nil, "other-filtered": nil, "no-pselect": nil, "no-sigreturn": ErrNotInvoked, "strict": ErrNotInvoked,
	} {
		t.Run(state, func(t *testing.T) {
			g := startTarget(t, build(t, "states.c", "gcc"), state)
			if state == "strict" {
				waitForState(t, g.pid(), 'S')
			}
			p := openTarget(t, g)
			r, err := invokeOn(t, p, g.pid(), Invocation{Function: functionIn(t, p, "/libc.", "memfd_create"), Arguments: list(text("x"), integer(0))})
			if !errors.Is(err, want) || want != nil && !errors.Is(err, ErrSeccomp) {
				t.Errorf("memfd_create: %v, want %v", err, want)
			}
			if want == nil && (r == nil || state == "memfd-fails" != (int32(r.Integer[0]) == -1)) {
				t.Errorf("memfd_create returned %+v", r)
			}
			if text := g.finish(); text != "ok\n" {
				t.Errorf("target: %s", text)
			}
		})
	}
}

func TestOneCallAtATime(t *testing.T) {
	needInvoke(t)
	g := startTarget(t, build(t, "invoke.c", "gcc"))
	p := openTarget(t, g)
	call := Invocation{Function: functionIn(t, p, "/libc.", "getpid")}
	other, err := p.openFile("", os.O_RDONLY) // as another process that calls a function does
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := invokeOn(t, p, g.pid(), call); !errors.Is(err, ErrNotInvoked) || !strings.Contains(err.Error(), "somebody else") {
		t.Error(err)
	}
	other.Close()
	if r, err := invokeOn(t, p, g.pid(), call); err != nil || r.Integer[0] != uint64(g.pid()) {
		t.Errorf("getpid: %+v, %v", r, err)
	}
	c, err := p.returnCode()
	if err != nil {
		t.Fatal(err)
	}
	if string(c.old) == string(c.code) {
		t.Error("the code that functions return to is still there")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestARefusedInvocationLeavesTheThreadUsable(t *testing.T) {
	needInvoke(t)
	g := startTarget(t, build(t, "invoke.c", "gcc"))
	p := openTarget(t, g)
	getpid := functionIn(t, p, "/libc.", "getpid")
	for name, call := range map[string]Invocation{
		"no function":   {},
		"too much room": {Function: getpid, Room: 1 << 29},
		"too many":      {Function: getpid, Arguments: make([]Argument, MaxArguments+1)},
		"too long":      {Function: getpid, Arguments: list(Argument{Data: make([]byte, MaxInvocationData+1)})},
	} {
		err := p.EachThread(context.Background(), StopOptions{}, []int{g.pid()}, func(thread *Thread, err error) error {
			if err != nil {
				return err
			}
			if err := thread.Invoke(context.Background(), call); !errors.Is(err, ErrNotInvoked) {
				t.Errorf("%s: %v", name, err)
			}
			_, err = thread.Regs()
			return err
		}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

// needInvoke skips a test where no port can have threads call functions yet.
func needInvoke(t *testing.T) {
	t.Helper()
	if CallsSupported() != nil {
		t.Skip("threads can't be made to call functions on this processor yet")
	}
}
