package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

// playAwaitExec awaits the exec of the thread whose process, ID and go-file args name, and says how far it is.
func playAwaitExec(args []string) int {
	ids, err := atois(args[:2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Println("ready")
	err = AwaitExec(context.Background(), ids[0], ids[1], longPatience, execOptions, func() {
		fmt.Println("go")
		_ = os.WriteFile(args[2], nil, 0o600)
	}, func(s *Stopped) error {
		fmt.Println("fn")
		return inject(s)
	})
	if err != nil {
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	fmt.Println("done")
	time.Sleep(time.Minute)
	return 0
}

func TestNewProgramSurvivesTheTracersDeathAtAnyInstant(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	for _, c := range []struct {
		mode, compiler string
		flags          []string
		kills          int
	}{
		{"plain", "gcc", nil, 60}, {"blocked", "gcc", nil, 20}, {"vfork", "gcc", nil, 40}, {"thread", "gcc", nil, 40},
		{"plain", "gcc", []string{"-static"}, 20}, {"plain", "musl-gcc", nil, 20}, {"plain", "musl-gcc", []string{"-static"}, 20},
	} {
		t.Run(c.mode+"-"+c.compiler+strings.Join(c.flags, ""), func(t *testing.T) {
			t.Parallel()
			path := build(t, "arrives.c", c.compiler, c.flags...)
			last := map[string]int{} // what the tracer has said last
			for range c.kills {
				e := startExecer(t, c.mode, path, "x", "y")
				last[e.killTracer()]++
				e.leave()
				text := strings.Replace(e.finish(), " detoured", "", 1)
				if c.mode == "blocked" {
					text = strings.TrimPrefix(text, "signal 23 is blocked\nsignal 28 is blocked\n")
				}
				if text != "arrived x 3\nok\n" {
					t.Fatalf("target: %q; tracers got to %v", text, last)
				}
			}
			t.Logf("tracers got to %v", last)
		})
	}
}

// killTracer starts a tracer, sends the target signals that programs ignore, kills the tracer some time after it
// has begun or after it has said go, and returns what that has said last.
func (e *execer) killTracer() string {
	tracer := startRole(e.t, "await-exec", e.process, strconv.Itoa(e.thread), e.goFile)
	longest := 500 * time.Microsecond
	if rand.IntN(4) > 0 {
		longest = 200 * time.Microsecond << rand.IntN(8) // however loaded the machine is, some get through
		if line := tracer.line(); line != "go" {
			e.t.Fatalf("tracer: %s%s", line, &tracer.stderr)
		}
	}
	wait := time.Duration(rand.Int64N(int64(longest)))
	for end := time.Now().Add(wait); time.Now().Before(end); {
		if err := unix.Kill(e.process, unix.SIGURG); err != nil {
			e.t.Fatal(err)
		}
		time.Sleep(wait / 4)
	}
	_ = tracer.cmd.Process.Kill()
	said := "go"
	for line := tracer.line(); line != ""; line = tracer.line() {
		said = line
	}
	killRole(tracer)
	if text := tracer.stderr.String(); text != "" {
		e.t.Fatalf("tracer: %s", text)
	}
	return said
}
