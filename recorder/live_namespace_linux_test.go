package recorder_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

// namespace is a shell in a PID namespace of its own, with a target beside it.
type namespace struct {
	t            *testing.T
	in           io.Writer
	out          *bufio.Reader
	inner, outer int // the target's ID, as seen from within and from here
}

// startInNamespace starts a target in a PID namespace of its own.
func startInNamespace(t *testing.T, target ...string) *namespace {
	t.Helper()
	const script = `sleep 1000 | "$@" >/dev/null & echo "$!"
while read -r line; do sh -c "$line" 2>&1; echo "code $?"; done; kill -9 -1`
	cmd := exec.Command("unshare", append([]string{"-f", "-p", "--mount-proc", "sh", "-c", script, "sh"}, target...)...)
	in, out := realtest.StartPiped(t, cmd)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its shell kills all that is in there
	})
	n := &namespace{t: t, in: in, out: bufio.NewReader(out)}
	line, err := n.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if n.inner, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	n.outer = n.find(filepath.Base(target[0]))
	return n
}

// find returns the ID that the target has here. It may not run its program yet.
func (n *namespace) find(name string) int {
	n.t.Helper()
	for range 1000 {
		all, err := filepath.Glob("/proc/[0-9]*/status")
		if err != nil {
			n.t.Fatal(err)
		}
		for _, path := range all {
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			s, err := process.ParseStatus(text)
			if err == nil && len(s.NSPIDs) == 2 && s.NSPIDs[1] == n.inner && strings.HasPrefix(name, s.Name) {
				return s.NSPIDs[0]
			}
		}
	}
	n.t.Fatalf("there is no %s with ID %d in the namespace", name, n.inner)
	return 0
}

// run runs a command in the namespace and returns its exit code and what it has said.
func (n *namespace) run(words ...string) (code int, said string) {
	n.t.Helper()
	if _, err := fmt.Fprintln(n.in, strings.Join(words, " ")); err != nil {
		n.t.Fatal(err)
	}
	for {
		line, err := n.out.ReadString('\n')
		if err != nil {
			n.t.Fatal(err)
		}
		if _, err := fmt.Sscanf(line, "code %d\n", &code); err == nil {
			return code, said
		}
		said += line
	}
}

// Whoever is in another PID namespace sees that a recorder lives, and that it has died.
func TestARecorderLivesInOtherPIDNamespacesToo(t *testing.T) {
	needLive(t, realtest.Superuser) // who may make a PID namespace
	n := startInNamespace(t, realtest.Build(t, "threads"), "steady", "2")
	callreel, inner := realtest.CallreelPath(t), strconv.Itoa(n.inner)
	r := realtest.StartRecording(t, "-p", strconv.Itoa(n.outer))
	const busy = "already being recorded"
	if code, said := n.run(callreel, "detach", "-p", inner); code != 3 || !strings.Contains(said, busy) || !strings.Contains(said, "another PID namespace") {
		t.Errorf("detach: code %d: %s", code, said)
	}
	reel := filepath.Join(t.TempDir(), "second.reel")
	if code, said := n.run(callreel, "record", "-d", "100ms", "-o", reel, "-p", inner); code != 3 || !strings.Contains(said, busy) {
		t.Errorf("record: code %d: %s", code, said)
	}
	wantProbed(t, n.outer)
	r.Signal(os.Kill)
	r.Wait()
	if code, said := n.run(callreel, "detach", "-p", inner); code != 0 || !strings.Contains(said, "text verified: true") {
		t.Errorf("detach of one that was killed: code %d: %s", code, said)
	}
	wantUntouched(t, n.outer)

	// And the other way round: the recorder is in there.
	if _, err := fmt.Fprintf(n.in, "%s record -o %s -p %s >/dev/null 2>&1 & while ! test -s %s; do sleep 0.01; done\n", callreel, reel, inner, reel); err != nil {
		t.Fatal(err)
	}
	if code, said := n.run("true"); code != 0 {
		t.Fatal(said)
	}
	d := realtest.Callreel(t, "detach", "-p", strconv.Itoa(n.outer))
	if d.Code != 3 || !strings.Contains(d.Stderr, busy) {
		t.Errorf("detach from outside: code %d: %s", d.Code, d.Stderr)
	}
	wantProbed(t, n.outer)
}
