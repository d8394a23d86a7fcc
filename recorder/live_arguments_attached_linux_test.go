package recorder_test

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// recordWaiting records all calls of a program that waits until it is attached to, and returns the reel's name.
func recordWaiting(t *testing.T, program, rounds string, flags ...string) string {
	t.Helper()
	p := realtest.Start(t, program, rounds, "wait")
	r := realtest.StartRecording(t, append(pidFlag(p), flags...)...)
	p.Go()
	p.WaitLine("counted")
	stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	return r.File
}

// As TestArgumentsAreWhatGDBPrints, of programs that run already, by gcc alone. Of code that is optimized gdb doesn't know all.
func TestArgumentsOfARunningProcessAreWhatGDBPrints(t *testing.T) {
	t.Parallel()
	needLive(t)
	realtest.Need(t, realtest.GDB)
	for _, k := range []struct {
		name, target string
		c            argumentCase
		flags        []string
		unlike       []string
	}{
		{"C", "arguments", cArguments, nil, []string{"p.a", "p.b", "g.a", "g.c", "q.a", "q.b", "q.c"}},
		{"C, not optimized", "arguments", cArguments, []string{"-O0"}, nil},
		{"C++", "arguments_cxx", cxxArguments, nil, []string{"s.x", "s.y"}},
		{"C++, not optimized", "arguments_cxx", cxxArguments, []string{"-O0"}, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := k.c
			c.rounds, c.attach = "20", true
			c.unlike = append(slices.Clone(c.unlike), k.unlike...)
			c.build = func(t *testing.T) string { return realtest.Build(t, k.target, k.flags...) }
			c.compare(t, 100)
		})
	}
}
