package process

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

// say sends a line to the target and returns the number that it answers with "ok".
func (g *target) say(line string) int {
	g.t.Helper()
	if _, err := io.WriteString(g.stdin, line+"\n"); err != nil {
		g.t.Fatal(err)
	}
	answer := g.line()
	word, ok := strings.CutPrefix(answer, "ok ")
	n, err := strconv.Atoi(word)
	if !ok || err != nil {
		g.t.Fatalf("the target answers %q to %q", answer, line)
	}
	return n
}

func needKcmp(t testing.TB) {
	t.Helper()
	_, err := sameMemory(os.Getpid(), os.Getpid())
	realtest.NeedThat(t, "kcmp(2)", err)
}

func TestProcessThatSharesTheMemoryIsFoundAndRefused(t *testing.T) {
	needKcmp(t)
	g := startTarget(t, build(t, "sharing.c", "gcc"))
	p := openTarget(t, g)
	if pid, name, err := p.MemoryShared(); pid != 0 || name != "" || err != nil {
		t.Errorf("alone: %d (%s), %v", pid, name, err)
	}
	for range 3 {
		stop(t, p, doNothing)
		// Made right after a look, it is found by its new ID, otherwise by its size.
		other := g.say("share")
		for _, fresh := range []bool{true, false} {
			if !fresh {
				p.sharing.at = p.sharing.at.Add(-2 * sharingFresh)
			}
			_, err := p.Stop(context.Background(), StopOptions{}, func(*Stopped) error {
				t.Error("called")
				return nil
			})
			if !errors.Is(err, ErrMemoryShared) || !strings.Contains(err.Error(), "process "+itoa(other)) {
				t.Errorf("stopped beside process %d: %v", other, err)
			}
		}
		if pid, name, err := p.MemoryShared(); pid != other || name != p.Comm() || err != nil {
			t.Errorf("beside %d: %d (%s), %v", other, pid, name, err)
		}
		if status, err := p.Status(); err != nil || status.TracerPID != 0 {
			t.Errorf("traced by %d after that, %v", status.TracerPID, err)
		}
		g.say("end")
	}
	stop(t, p, inject)
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestForksDoNotCountAsSharingMemory(t *testing.T) {
	needKcmp(t)
	g := startTarget(t, build(t, "churn.c", "gcc"))
	same, err := sameMemory(g.pid(), os.Getpid())
	if same || err != nil {
		t.Errorf("same memory as the target's: %v, %v", same, err)
	}
	p := openTarget(t, g)
	if pid, _, err := p.MemoryShared(); pid != 0 || err != nil {
		t.Errorf("%d, %v", pid, err)
	}
	// Kernel threads have no memory, and are alike in that.
	if _, ok := p.sharer(2, 2); ok {
		t.Error("a kernel thread shares memory")
	}
	if _, err := sameMemory(g.pid(), 1<<30); !errors.Is(err, unix.ESRCH) {
		t.Errorf("no such process: %v", err)
	}
	g.finish()
}
