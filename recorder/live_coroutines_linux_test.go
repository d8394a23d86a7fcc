package recorder_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// coroutinesReport is what `report --json` says that these tests look at.
type coroutinesReport struct {
	Calls     int64 `json:"calls"`
	Events    int64 `json:"events"`
	Unmatched int64 `json:"unmatched_exits"`
	Duration  int64 `json:"duration_ns"`
	Functions []struct {
		Name       string `json:"name"`
		Calls      int64  `json:"calls"`
		TotalNS    int64  `json:"total_ns"`
		SelfNS     int64  `json:"self_ns"`
		Unfinished int64  `json:"unfinished"`
		Implicit   int64  `json:"implicit"`
	} `json:"functions"`
}

// wantCoroutines records a program of one thread and asserts that each call is found whole, however many stacks there are: those of the
// functions in left seem not to have returned, as that is so. The program prints how many calls of each function it has made.
func wantCoroutines(t *testing.T, left []string, command ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "coroutines.reel")
	args := []string{"record", "--lossless", "-o", file, "-m", filepath.Base(command[0])}
	for _, name := range []string{"take_turns", "wait_for_turn", "step", "jump", "jump_inner"} {
		args = append(args, "-f", name)
	}
	r := realtest.MustCallreel(t, append(append(args, "--"), command...)...)
	made, err := realtest.ParseCounts(strings.TrimSpace(r.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	rep := realtest.Decode[coroutinesReport](t, realtest.MustCallreel(t, "report", "--json", file).Stdout)
	sum := int64(0)
	for _, f := range rep.Functions {
		name, _, _ := strings.Cut(f.Name, "(")
		want := int64(0)
		for _, l := range left {
			if l == name {
				want = f.Calls
			}
		}
		if f.Calls != made[name] || f.Implicit != want || f.Unfinished != 0 {
			t.Errorf("%s: %d calls, the program made %d; %d left without returning, want %d; %d unfinished", name, f.Calls, made[name], f.Implicit, want, f.Unfinished)
		}
		if f.SelfNS > f.TotalNS {
			t.Errorf("%s: %d ns of its own in %d", name, f.SelfNS, f.TotalNS)
		}
		sum += f.SelfNS
	}
	if rep.Unmatched != 0 || len(rep.Functions) != len(made) {
		t.Errorf("%d exits without an entry; %d functions, want %d", rep.Unmatched, len(rep.Functions), len(made))
	}
	// Whatever waits, an instant is one call's own.
	if sum > rep.Duration {
		t.Errorf("%d ns are calls' own in a recording of %d", sum, rep.Duration)
	}
}

func TestBoostFibersAreWhole(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GXX, realtest.Boost)
	target := realtest.Build(t, "coroutines_boost")
	for _, args := range []string{"20 64 200", "20 16 200", "1000 16 20"} {
		t.Run(args, func(t *testing.T) {
			wantCoroutines(t, []string{"jump", "jump_inner"}, append([]string{target}, strings.Fields(args)...)...)
		})
	}
}

func TestCoroutinesSideBySideAreWhole(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GCC)
	target := realtest.Build(t, "coroutines")
	for _, args := range []string{
		"ucontext up 20 64 800", "ucontext down 20 64 200", "ucontext own 20 64 200", "ucontext up 20 16 200",
		"hand up 20 64 200", "hand down 20 16 200", "hand own 20 256 200",
		"ucontext up 1000 16 20", "ucontext own 1000 64 20", "hand up 1000 64 20", "hand down 1000 16 20",
	} {
		t.Run(args, func(t *testing.T) {
			wantCoroutines(t, []string{"jump", "jump_inner"}, append([]string{target}, strings.Fields(args)...)...)
		})
	}
}

// rubyFibers makes fibers without end, or as many as it is told. Most are abandoned when they have waited once.
const rubyFibers = `
keep = Fiber.new { loop { Fiber.yield 1 } }
kept, sum, n = [], 0, ARGV[0].to_i
$stdout.sync = true
puts "ready" if n == 0
i = 0
until n > 0 ? i == n : i % 1000 == 999 && IO.select([$stdin], nil, nil, 0)
  f = Fiber.new { |k| Fiber.yield k; 2 }
  sum += f.resume(1)
  kept << f if i % 20 == 0 && kept.size < 500
  sum += keep.resume
  i += 1
end
kept.each { |f| sum += f.resume }
puts "ruby fibers=#{i} kept=#{kept.size} sum=#{sum} ok"
`

func TestRubysFibersAreMadeAndAbandoned(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.Ruby)
	ruby, err := realtest.Ruby.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, file := filepath.Join(dir, "fibers.rb"), filepath.Join(dir, "fibers.reel")
	if err := os.WriteFile(script, []byte(rubyFibers), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, file string) coroutinesReport {
		rep := realtest.Decode[coroutinesReport](t, realtest.MustCallreel(t, "report", "--json", file).Stdout)
		sum := int64(0)
		for _, f := range rep.Functions {
			if f.SelfNS > f.TotalNS {
				t.Errorf("%s: %d ns of its own in %d", f.Name, f.SelfNS, f.TotalNS)
			}
			sum += f.SelfNS
		}
		if rep.Calls == 0 || sum > rep.Duration {
			t.Errorf("%d calls; %d ns are their own in a recording of %d", rep.Calls, sum, rep.Duration)
		}
		return rep
	}
	t.Run("to the end", func(t *testing.T) {
		r := realtest.MustCallreel(t, "record", "--lossless", "-o", file, "-m", "libruby*", "--", ruby, script, "3000")
		if want := "ruby fibers=3000 kept=150 sum=6300 ok\n"; r.Stdout != want {
			t.Errorf("the program said %q, want %q", r.Stdout, want)
		}
		if rep := check(t, file); rep.Unmatched > rep.Events/10_000 {
			t.Errorf("%d of %d events are exits without an entry", rep.Unmatched, rep.Events)
		}
	})
	t.Run("for a while", func(t *testing.T) {
		p := realtest.Start(t, ruby, script)
		r := realtest.MustCallreel(t, "record", "--json", "-d", "1s", "-o", filepath.Join(dir, "while.reel"), "-m", "libruby*", "-p", strconv.Itoa(p.Pid()))
		s := realtest.Decode[summary](t, r.Stdout)
		rep := check(t, filepath.Join(dir, "while.reel"))
		if s.Calls != rep.Calls || !s.TextVerified {
			t.Errorf("%d calls in the summary, %d in the report; text verified: %v", s.Calls, rep.Calls, s.TextVerified)
		}
		p.Finish()
	})
}
