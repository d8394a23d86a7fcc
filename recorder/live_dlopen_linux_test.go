package recorder_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// recorded says how many calls of library_value are in the reel, which may still be written.
func recorded(t *testing.T, file string) int64 {
	t.Helper()
	r := realtest.Callreel(t, "report", "--json", file)
	if r.Code != 0 {
		t.Fatalf("report: %s", r.Stderr)
	}
	return realtest.Decode[report](t, r.Stdout).Report.Calls("library_value")
}

// allRecorded is recorded when no more calls come.
func allRecorded(t *testing.T, file string) int64 {
	t.Helper()
	return settled(func() int64 { return recorded(t, file) })
}

// settled is a number when it doesn't change any more.
func settled(number func() int64) int64 {
	for n := int64(-1); ; time.Sleep(500 * time.Millisecond) {
		now := number()
		if now == n {
			return n
		}
		n = now
	}
}

// A library that is loaded while recording is recorded; unloaded it is
// forgotten, and recorded again when it comes back.
func TestALibraryThatIsLoadedLaterIsRecorded(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, mode := range []string{"--eager", "--lazy"} {
		t.Run(mode, func(t *testing.T) {
			p := loading(t, "late")
			r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", mode, "-m", "l*-*")...)
			const rounds = 3
			for range rounds {
				before := allRecorded(t, r.File)
				p.Go()
				p.WaitLine("loaded")
				eventually(t, "recorded", func() bool { return recorded(t, r.File) > before })
				p.Go()
				p.WaitLine("unloaded")
			}
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			counts := p.Finish()
			calls := reportOf(t, r.File).Report.Calls("library_value")
			t.Logf("%d of %d calls of the library recorded, %+v", calls, counts["calls"], s.Libraries)
			if calls == 0 || calls > counts["calls"] {
				t.Errorf("%d calls recorded, %d made", calls, counts["calls"])
			}
			if s.Libraries.Loaded < rounds || s.Libraries.Unloaded < rounds-1 {
				t.Errorf("%+v after %d rounds", s.Libraries, rounds)
			}
			if s.Ended || s.Left != "" || s.Functions.Traced < 3 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// So are those that come with it since it needs them, several at once.
func TestLibrariesThatOthersNeedAreRecorded(t *testing.T) {
	needLive(t, realtest.Python3)
	const script = `
import sys
print("ready", flush=True)
sys.stdin.readline()
import _lzma, _bz2
print("loaded", flush=True)
import select
n = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    n += 1
    _lzma.LZMACompressor().compress(b"x" * 200)
    _bz2.BZ2Compressor().compress(b"x" * 200)
print("python rounds=%d ok" % n, flush=True)
`
	p := realtest.Python(t, script)
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "lib[clb][.zb]*")...) // libc, and what comes: liblzma, libbz2
	p.Go()
	p.WaitLine("loaded")
	eventually(t, "recorded", func() bool {
		found := map[string]bool{}
		for _, f := range realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout).Functions {
			for _, name := range []string{"lzma_code", "BZ2_bzCompressInit"} {
				found[name] = found[name] || f.Name == name && f.Calls > 0
			}
		}
		return found["lzma_code"] && found["BZ2_bzCompressInit"]
	})
	s := stop(t, r)
	wantUntouched(t, p.Pid())
	t.Logf("%+v", s.Libraries)
	if s.Libraries.Loaded < 2 {
		t.Errorf("%+v", s.Libraries)
	}
	p.Finish()
}

// Libraries are loaded and unloaded by the hundred, under load.
func TestLibrariesComeAndGoWhileRecorded(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, target := range []string{"swap", "churn"} {
		for _, mode := range []string{"--eager", "--lazy"} {
			t.Run(target+" "+mode, func(t *testing.T) {
				p := loading(t, target)
				r := realtest.StartRecording(t, append(pidFlag(p), mode, "-m", "l*-*")...)
				time.Sleep(1500 * time.Millisecond) // each library is there for moments only: how many are noticed is chance
				s := stop(t, r)                     // the text is verified
				if remains, err := remainsIn(p.Pid()); err != nil || len(remains) > 0 {
					t.Errorf("left %+v, %v", remains, err)
				}
				counts := p.Finish()
				t.Logf("%d rounds, %+v", counts["loads"], s.Libraries)
				// Two libraries, at a few addresses: what comes back needs nothing new.
				if s.Functions.Traced > 200 {
					t.Errorf("%d functions traced: what came back was planned anew", s.Functions.Traced)
				}
			})
		}
	}
}

// And their recorder may be killed at any instant.
func TestRecordersOfChangingLibrariesAreKilled(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, mode := range []string{"--eager", "--lazy"} {
		p := loading(t, "churn")
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		t.Logf("seed %d", seed)
		for i := range kills(t) {
			r := realtest.StartRecording(t, append(pidFlag(p), mode, "-m", "l*-*")...)
			time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			r.Signal(os.Kill)
			r.Wait()
			d := realtest.Callreel(t, append([]string{"detach"}, pidFlag(p)...)...)
			if d.Code != 0 || !strings.Contains(d.Stdout, "text verified: true") {
				t.Fatalf("%s, round %d: detach: code %d: %s%s; the target: %s", mode, i, d.Code, d.Stdout, d.Stderr, p.Ended())
			}
			if !p.Alive() {
				t.Fatalf("%s, round %d: the target has ended: %s", mode, i, p.Stderr())
			}
			if remains, err := remainsIn(p.Pid()); err != nil || len(remains) > 0 {
				t.Fatalf("%s, round %d: left %+v, %v", mode, i, remains, err)
			}
		}
		if counts := p.Finish(); counts["loads"] == 0 {
			t.Errorf("%v", counts)
		}
	}
}

// A child that was forked while a library was there goes on calling it, though
// the parent has unloaded it, and can be cleaned.
func TestAChildKeepsWhatItsParentUnloads(t *testing.T) {
	needLive(t, realtest.Python3)
	const script = `
import os, sys, _ctypes, ctypes
print("ready", flush=True)
sys.stdin.readline()
lib = ctypes.CDLL(sys.argv[1])
print("loaded", flush=True)
sys.stdin.readline()
pid = os.fork()
if pid == 0:
    rounds = 0
    while not os.path.exists(sys.argv[2]):
        for i in range(100):
            if lib.library_value(i) != i * 7 + 1: os._exit(3)
        rounds += 1
    os._exit(0 if rounds else 4)
print("child", pid, flush=True)
_ctypes.dlclose(lib._handle)
print("closed", flush=True)
sys.stdin.readline()
open(sys.argv[2], "w").close()
_, status = os.waitpid(pid, 0)
print("fork status=%d ok" % status, flush=True)
`
	library := realtest.Build(t, "library", "-fPIC", "-shared", "-DWHICH=1")
	p := realtest.Python(t, script, library, t.TempDir()+"/end")
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "python3*", "-m", "l*")...)
	p.Go()
	p.WaitLine("loaded")
	time.Sleep(100 * time.Millisecond)
	p.Go()
	child := childOf(t, p)
	p.WaitLine("closed")
	time.Sleep(100 * time.Millisecond) // it is noticed, mostly
	detached := realtest.MustCallreel(t, "detach", "-p", child)
	if !strings.Contains(detached.Stdout, "text verified: true") {
		t.Errorf("detach said %q", detached.Stdout)
	}
	stop(t, r)
	p.Go()
	if counts := p.Finish(); counts["status"] != 0 {
		t.Errorf("%v", counts)
	}
}

func childOf(t *testing.T, p *realtest.Proc) string {
	t.Helper()
	return strings.TrimPrefix(p.WaitLine("child "), "child ")
}
