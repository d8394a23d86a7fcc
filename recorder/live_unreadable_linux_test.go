package recorder_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// A filter kills the process if it calls process_vm_readv, by which stubs read values in memory. What is asked for of such values is known
// only when the library comes that has the functions. It must come without harm, as often as it likes.
func TestValuesOfALibraryThatMayNotBeReadAreOmitted(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, c := range []struct {
		name, flag, what, notice string
		recorded                 bool
	}{
		{"values", "--args", "plug*", "plug: name: it is in memory", true},
		{"a condition", "--if", "plug*: n == 7", "a library that was loaded is not recorded", false},
	} {
		for _, mode := range []string{"--eager", "--lazy"} {
			t.Run(c.name+" "+mode, func(t *testing.T) {
				t.Parallel()
				program, library := realtest.Build(t, "unreadable"), realtest.Build(t, "plugin", "-fPIC", "-shared")
				p := realtest.Start(t, program, library)
				r := realtest.StartRecording(t, append(pidFlag(p), mode, "-m", filepath.Base(program), "-m", filepath.Base(library),
					"-f", "plug*", c.flag, c.what)...)
				calls := func(name string) int64 {
					return realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout).Report.Calls(name)
				}
				for round := 1; round <= 2; round++ {
					before := calls("plug")
					p.Go()
					p.WaitLine(fmt.Sprint("loaded ", round))
					eventually(t, "recorded, or refused", func() bool {
						if !p.Alive() {
							t.Fatalf("the process was killed: %s", p.Ended())
						}
						if c.recorded {
							return calls("plug") > before
						}
						return strings.Count(r.Stderr(), c.notice) >= round
					})
					p.Go()
					p.WaitLine(fmt.Sprint("unloaded ", round))
				}
				s := stop(t, r)
				wantUntouched(t, p.Pid())
				p.Finish()
				if said := r.Stderr(); !strings.Contains(said, c.notice) || !strings.Contains(said, "process_vm_readv") {
					t.Errorf("nothing is said: %q", said)
				}
				if own, plug := calls("plug_own"), calls("plug"); own == 0 || plug > 0 != c.recorded {
					t.Errorf("%d calls of the program, %d of the library, %+v", own, plug, s.Libraries)
				}
				if got, want := valuesOf(t, r.File, "plug"), []string{"a", "b", "c", "d", "e"}; c.recorded && !slices.Equal(got, want) {
					t.Errorf("the values recorded are %q, not %q", got, want)
				}
			})
		}
	}
}

// valuesOf are the names of the values of a function in a reel, each of which must be known, and 7.
func valuesOf(t *testing.T, file, function string) []string {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	for _, thread := range f.Threads() {
		r := f.Values(thread.Key)
		for s := r.Next(); s != nil; s = r.Next() {
			if fn, _ := f.Function(s.Function); fn.Name != function {
				continue
			}
			args := f.Arguments(s.Function, s.AtReturn)
			for i, v := range s.Values {
				if v.State != reel.ValueKnown || v.Bits != 7 {
					t.Fatalf("%s is %+v", args[i].Name, v)
				}
				if !slices.Contains(names, args[i].Name) {
					names = append(names, args[i].Name)
				}
			}
		}
	}
	return names
}

// A filter that is there when recording begins refuses it, if values in memory are asked for.
func TestValuesThatMayNotBeReadAreRefused(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "unreadable"), realtest.Build(t, "plugin", "-fPIC", "-shared"))
	refuse(t, p.Pid(), 3, []string{"process_vm_readv", "to read arguments in memory"}, "--args", "named(name)")
	wantUntouched(t, p.Pid())
	p.Finish()
}
