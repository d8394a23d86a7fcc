package recorder_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
)

// Functions, and libraries, that come later can be chosen before; what waits for what is said.
func TestGlobsMayWaitForALibrary(t *testing.T) {
	t.Parallel()
	needLive(t)
	for name, args := range map[string][]string{
		"functions alone":             {"-f", "library_va*"},
		"functions beside others":     {"-f", "steady_work", "-f", "library_value"},
		"a library":                   {"-m", "library-*"},
		"a library and its functions": {"-m", "library-*", "-f", "library_value"},
		"values of a function":        {"-f", "steady_work", "--args", "library_value"},
	} {
		t.Run(name, func(t *testing.T) {
			p := loading(t, "late")
			r := realtest.StartRecording(t, append(pidFlag(p), args...)...)
			p.Go()
			p.WaitLine("loaded")
			eventually(t, "recorded", func() bool { return recorded(t, r.File) > 0 })
			if said := r.Stderr(); !strings.Contains(said, " matches nothing") || !strings.Contains(said, "; waiting for a library ") {
				t.Errorf("it doesn't say what it waits for: %q", said)
			}
			if s := stop(t, r); s.Libraries.Loaded == 0 {
				t.Errorf("%+v", s)
			}
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}

// What is misspelt is still refused, and what nothing can come for.
func TestGlobsThatCannotComeToMatchAreRefused(t *testing.T) {
	t.Parallel()
	needLive(t)
	loads, fixed := loading(t, "late"), realtest.Start(t, realtest.Build(t, "count"), "1", "1")
	for _, c := range []struct {
		p    *realtest.Proc
		args []string
		near string
	}{
		{loads, []string{"-f", "stedy_work"}, "steady_work"},
		{loads, []string{"-f", "steady_wrok"}, "steady_work"},
		{loads, []string{"-f", "steady_work", "--args", "stedy_work"}, "steady_work"},
		{loads, []string{"--inside", "steady_work", "--ret", "steady_wrok"}, "steady_work"},
		{loads, []string{"-m", "libc.so.7"}, "libc.so.6"},
		{fixed, []string{"-f", "library_va*"}, ""},
		{fixed, []string{"-m", "library-*"}, ""},
	} {
		r := realtest.Callreel(t, append([]string{"record", "-d", "1s", "-o", filepath.Join(t.TempDir(), "none.reel"), "-p", strconv.Itoa(c.p.Pid())}, c.args...)...)
		if r.Code != 2 || !strings.Contains(r.Stderr, "matches nothing") || !strings.Contains(r.Stderr, c.near) {
			t.Errorf("%q: code %d, %s", c.args, r.Code, r.Stderr)
		}
	}
	loads.Finish()
	fixed.Go()
	fixed.Finish()
}

// What is set before a library is loaded holds for it.
func TestSetMayBeAboutALibraryThatIsLoadedLater(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := loading(t, "late")
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "loading-*", "-m", "library-*")...)
	a, err := recorder.AskToSet(t.Context(), p.Pid(), recorder.SetRequest{Functions: []string{"library_va*"}})
	if err != nil || a.On != 0 || a.Off == 0 || !slices.Equal(a.Waiting, []string{"-f library_va* matches nothing"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := recorder.AskToSet(t.Context(), p.Pid(), recorder.SetRequest{Exclude: []string{"stedy_work"}}); err == nil {
		t.Error("a name that is misspelt is no error")
	}
	p.Go()
	p.WaitLine("loaded")
	eventually(t, "recorded", func() bool { return recorded(t, r.File) > 0 })
	stop(t, r)
	if n := realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout).Report.Calls("steady_work"); n > 1 { // one may have been open
		t.Errorf("%d calls of what is off", n)
	}
	p.Finish()
}
