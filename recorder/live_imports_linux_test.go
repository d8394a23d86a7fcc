package recorder_test

import (
	"math/rand/v2"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// importing builds the program that calls a library, and returns what to start.
func importing(t *testing.T, flags ...string) (program, library string) {
	t.Helper()
	library = realtest.Build(t, "imports_library", "-fPIC", "-shared")
	return realtest.Build(t, "imports", slices.Concat(flags, []string{"-Wl,--no-as-needed", library})...), library
}

// importWays are ways of calling the functions of a library.
func importWays() map[string][]string {
	ways := map[string][]string{
		"lazy":   {"-Wl,-z,lazy"},
		"now":    {"-Wl,-z,now"},
		"relro":  {"-Wl,-z,now,-z,relro", "-fcf-protection"},
		"no PLT": {"-fno-plt"},
		"no PIE": {"-no-pie", "-fno-pie", "-Wl,-z,lazy"},
		"-O0":    {"-O0"},
	}
	if runtime.GOARCH == "arm64" { // without a PLT slots are read there
		ways["relro"] = []string{"-Wl,-z,now,-z,relro", "-mbranch-protection=standard"}
		delete(ways, "no PLT")
	}
	return ways
}

// importsList is what callreel imports --json says.
type importsList struct {
	Imports []struct{ Module, Symbol, Kind, Verdict, To, Function, Expected string }
}

func listImports(t testing.TB, args ...string) importsList {
	t.Helper()
	return realtest.Decode[importsList](t, realtest.MustCallreel(t, append([]string{"imports", "--json"}, args...)...).Stdout)
}

// verdict is that of the program's slot for a function, and where it leads.
func (l importsList) verdict(t testing.TB, symbol string) (verdict, to string) {
	t.Helper()
	for _, s := range l.Imports {
		if s.Symbol == symbol {
			return s.Verdict, s.To
		}
	}
	t.Fatalf("no slot for %s: %+v", symbol, l)
	return "", ""
}

// importCalls is how often each import was called, by its function's name, and how many of the calls have their own end.
func importCalls(t *testing.T, file string) (calls, whole map[string]int64) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, whole = map[string]int64{}, map[string]int64{}
	for _, thread := range f.Threads() {
		p := reel.Pairer{OnCall: func(c *reel.Call) {
			fn, _ := f.Function(c.Func)
			_, name, _ := strings.Cut(fn.Name, ":")
			calls[name]++
			if c.Complete() {
				whole[name]++
			}
		}}
		f.ReadThread(thread.Key, func(events []reel.Event, _ bool) bool {
			p.Push(events)
			return true
		})
		p.Finish(f.LastTick())
	}
	return calls, whole
}

// Each call is recorded, with its end, however the library's functions are bound: the first ones of slots that weren't, too.
func TestCallsByImportsAreWhatTheProgramCounts(t *testing.T) {
	t.Parallel()
	needLive(t)
	const rounds = 3000
	for name, flags := range importWays() {
		for _, with := range [][]string{nil, {"--lazy"}, {"-f", "round_of", "-f", "back*", "-f", "tail"}, {"--min", "1ns"}} {
			t.Run(name+strings.Join(with, " "), func(t *testing.T) {
				program, _ := importing(t, flags...)
				p := realtest.Start(t, program, "count", strconv.Itoa(rounds))
				r := realtest.StartRecording(t, slices.Concat(pidFlag(p), []string{"--lossless", "--imports", "imports_library*:*"}, with)...)
				p.Go()
				p.WaitLine("counted ")
				s := stop(t, r)
				wantUntouched(t, p.Pid())
				counts := p.Finish()
				calls, whole := importCalls(t, r.File)
				for key, function := range map[string]string{"add": "lib_add", "mul": "lib_mul", "stack": "lib_stack", "doubles": "lib_double",
					"large": "lib_large", "sum": "lib_sum", "late": "lib_late", "chosen": "lib_chosen"} {
					if name == "lazy" && key == "chosen" || name == "no PIE" && key == "chosen" || name == "-O0" && key == "chosen" {
						continue // nobody knows what the resolver will choose
					}
					if n := calls[function]; n > counts[key] || n < counts[key]-timeless(with, counts[key]) {
						t.Errorf("%s: %d calls recorded, %d made", function, calls[function], counts[key])
					}
				}
				if n, made := calls["lib_call"], counts["call"]+counts["thrown"]; n > made || n < made-timeless(with, made) {
					t.Errorf("lib_call: %d calls recorded, %d made, %d of which longjmp has left", calls["lib_call"], counts["call"], counts["thrown"])
				}
				taken := counts["taken"]
				if n := calls["lib_taken"]; n != 0 && (name != "no PIE" || n > taken || n < taken-timeless(with, taken)) { // there the address is that of the PLT's entry
					t.Errorf("%d calls of a function of which the program has the address", calls["lib_taken"])
				}
				for function, n := range whole {
					if n*10 < calls[function]*4 { // lib_add is called by a tail call half of the time
						t.Errorf("%s: %d of %d calls have an end", function, n, calls[function])
					}
				}
				if s.Left != "" || len(whole) == 0 {
					t.Errorf("%+v, %v", s, whole)
				}
			})
		}
	}
}

// What the linker hasn't done is told from what it has: a slot that the program itself has led elsewhere, and a preloaded library's function.
func TestImportsSayWhoHasReboundASlot(t *testing.T) {
	t.Parallel()
	needLive(t)
	program, library := importing(t, importWays()["relro"]...)
	before := realtest.Build(t, "imports_library", "-fPIC", "-shared", "-DINTERPOSE")
	cmd := exec.Command(program, "hook")
	cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+before)
	p := realtest.StartCommand(t, cmd)
	all := func() importsList { return listImports(t, append(pidFlag(p), "-m", "imports-*")...) }
	l := all()
	for symbol, want := range map[string][2]string{
		"lib_add": {"bound", module(library)}, "lib_mul": {"interposed", module(before)}, "lib_chosen": {"bound", module(library)},
	} {
		if verdict, to := l.verdict(t, symbol); verdict != want[0] || to != want[1] {
			t.Errorf("%s: %s to %s, want %v", symbol, verdict, to, want)
		}
	}
	p.Go()
	p.WaitLine("hooked")
	if verdict, to := all().verdict(t, "lib_add"); verdict != "rebound" || to != module(program) {
		t.Errorf("lib_add is %s to %s", verdict, to)
	}
	p.Finish()
	late, _ := importing(t, importWays()["lazy"]...)
	p = realtest.Start(t, late, "count", "1")
	if verdict, _ := listImports(t, append(pidFlag(p), "-m", "imports-*")...).verdict(t, "lib_late"); verdict != "lazy" {
		t.Errorf("lib_late is %s before its first call", verdict)
	}
	p.Go()
	p.WaitLine("counted ")
	if verdict, _ := listImports(t, append(pidFlag(p), "-m", "imports-*")...).verdict(t, "lib_late"); verdict != "bound" {
		t.Errorf("lib_late is %s after its first call", verdict)
	}
	p.Finish()
}

// A program that leads a recorded slot elsewhere keeps what was there, a stub. So that stays when the recording ends, and works.
func TestAStubStaysThatTheProgramHasKept(t *testing.T) {
	t.Parallel()
	needLive(t)
	program, _ := importing(t, importWays()["now"]...)
	p := realtest.Start(t, program, "hook")
	r := realtest.StartRecording(t, append(pidFlag(p), "--imports", "*:lib_*")...)
	p.Go()
	p.WaitLine("hooked")
	s := stop(t, r)
	if !strings.Contains(s.Left, "written by somebody else") {
		t.Errorf("left: %q", s.Left)
	}
	if verdict, to := listImports(t, append(pidFlag(p), "-m", "imports-*")...).verdict(t, "lib_add"); verdict != "rebound" || !strings.HasPrefix(to, "imports-") {
		t.Errorf("lib_add is %s to %s", verdict, to)
	}
	if counts := p.Finish(); counts["add"] == 0 {
		t.Errorf("%v", counts)
	}
}

// A recorder that is killed leaves slots that lead to stubs, which work; detach leads them back.
func TestImportsOutliveTheirRecorder(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, way := range []string{"relro", "lazy"} {
		program, _ := importing(t, importWays()[way]...)
		p := realtest.Start(t, program, "busy")
		realtest.GiveWay(t, p.Pid())
		for range 5 {
			r := realtest.StartRecording(t, append(pidFlag(p), "--imports", "*:lib_*")...)
			if verdict, to := listImports(t, append(pidFlag(p), "-m", "imports-*")...).verdict(t, "lib_add"); verdict != "rebound" || to != "callreel" {
				t.Errorf("while it is recorded lib_add is %s to %s", verdict, to)
			}
			r.Signal(syscall.SIGKILL)
			r.Wait()
			realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
			wantUntouched(t, p.Pid())
			if verdict, to := listImports(t, append(pidFlag(p), "-m", "imports-*")...).verdict(t, "lib_add"); verdict != "bound" {
				t.Errorf("after detach lib_add is %s to %s", verdict, to)
			}
		}
		if counts := p.Finish(); counts["add"] == 0 {
			t.Errorf("%v", counts)
		}
	}
}

// Libraries that come later have slots of their own, which are written when the loader has filled them in; and again when they come back.
func TestImportsOfALibraryThatIsLoadedLater(t *testing.T) {
	t.Parallel()
	needLive(t)
	_, library := importing(t)
	for _, bound := range []string{"lazy", "now"} {
		plugin := realtest.Build(t, "imports_library", "-fPIC", "-shared", "-DWHICH=1", "-Wl,-z,"+bound, "-Wl,--no-as-needed", library)
		p := realtest.Start(t, realtest.Build(t, "loading"), "late", plugin, plugin)
		r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "--imports", "imports_library-*:lib_*")...)
		recorded := func() int64 {
			return realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout).Report.Calls(module(library) + ":lib_mul")
		}
		for range 3 {
			before := settled(recorded)
			p.Go()
			p.WaitLine("loaded")
			eventually(t, "recorded", func() bool { return recorded() > before })
			p.Go()
			p.WaitLine("unloaded")
		}
		s := stop(t, r)
		wantUntouched(t, p.Pid())
		counts := p.Finish()
		calls, whole := importCalls(t, r.File)
		if calls["lib_mul"] == 0 || calls["lib_mul"] > counts["calls"] || whole["lib_mul"]*2 < calls["lib_mul"] {
			t.Errorf("%s: %v of which %v have an end, %d made", bound, calls, whole, counts["calls"])
		}
		if s.Libraries.Loaded < 3 || s.Left != "" {
			t.Errorf("%s: %+v", bound, s)
		}
	}
}

// Whenever a recorder is killed, the program goes on and is right, and what was left can be removed.
func TestRecordersOfImportsMayBeKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	needLive(t)
	program, _ := importing(t, importWays()["lazy"]...)
	p := realtest.Start(t, program, "busy")
	realtest.GiveWay(t, p.Pid())
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	outcomes := map[string]int{}
	for i := range kills(t) {
		flags := append(pidFlag(p), "--imports", "*:*")
		if i%2 == 1 {
			flags = append(flags, "-d", "10ms")
		}
		if i%3 == 1 {
			flags = append(flags, "-m", "imports-*")
		}
		outcomes[killedAfter(t, p, time.Duration(random.Int64N(int64(600*time.Millisecond))), flags)]++
	}
	t.Logf("%v", outcomes)
	realtest.MustCallreel(t, append([]string{"record", "-d", "20ms", "--imports", "*:lib_*", "-o", t.TempDir() + "/last.reel"}, pidFlag(p)...)...)
	wantUntouched(t, p.Pid())
	if verdict, to := listImports(t, append(pidFlag(p), "-m", "imports-*")...).verdict(t, "lib_add"); verdict != "bound" {
		t.Errorf("lib_add is %s to %s", verdict, to)
	}
	if counts := p.Finish(); counts["add"] == 0 {
		t.Errorf("%v", counts)
	}
}

// module is a file's name.
func module(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// Programs that throw, are cancelled, switch stacks, return from signals and look at all of their registers go on as they do, all of their slots
// written.
func TestProgramsGoOnWithAllOfTheirSlotsWritten(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GXX)
	for _, target := range [][]string{{"cxx"}, {"throws", "3000", "3"}, {"cancel"}, {"abi"}, {"state", "2"}, {"threads", "churn", "3"}} {
		t.Run(target[0], func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, target[0]), target[1:]...)
			realtest.GiveWay(t, p.Pid())
			if target[0] == "throws" { // which waits to be told, here and when it has thrown
				p.Go()
			}
			calls := int64(0)
			for i := range 6 {
				args := []string{"-d", "60ms", "--imports", "*:*"}
				if i%3 == 1 {
					args = append(args, "-m", target[0]+"-*")
				}
				if i%3 == 2 {
					args = append(args, "--lazy", "--min", "1us", "--ring", "1M", "--lossless")
				}
				r := recordFor(t, args[1], slices.Concat(pidFlag(p), args[2:])...)
				calls += r.Calls
				wantUntouched(t, p.Pid())
				if r.Left != "" || r.Ended {
					t.Errorf("%+v", r.summary)
				}
			}
			if p.Finish(); calls == 0 {
				t.Error("no calls")
			}
		})
	}
}
