package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// What was mapped and opened is found again without knowing what the calls have returned.
func TestRoomIsUndoneWhoseResultsAreLost(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	p, finish := startCat(t)
	for _, lazy := range []bool{false, true} {
		before := mappedAndOpen(t, p)
		set := ring.Setup{Chunks: 16}
		s, maps := beforeMapping(t, p, set)
		s.Runtime.Lazy = lazy
		_, err := p.Stop(context.Background(), process.StopOptions{}, func(st *process.Stopped) error {
			if err := s.mapAll(st, maps, set); err != nil {
				return err
			}
			if now := mappedAndOpen(t, p); now == before {
				t.Errorf("nothing was mapped:\n%s", now)
			}
			s.closeMemory()
			_, own, err := s.memfd(st, ring.MemfdName, noExecMemfd) // one that was not closed yet
			if err != nil {
				return err
			}
			if err := unix.Close(own.FD); err != nil {
				return err
			}
			return s.undoMapping(st, s.Arenas, nil, fmt.Errorf("held up: %w", process.ErrLate))
		})
		if !errors.Is(err, process.ErrLate) {
			t.Fatal(err)
		}
		if now := mappedAndOpen(t, p); now != before {
			t.Errorf("lazy %v: before\n%safter\n%s", lazy, before, now)
		}
	}
	finish()
}

// startCat starts a program that finish ends. Nobody waits for it before, as that would take the reports of its stops.
func startCat(t *testing.T) (p *process.Process, finish func()) {
	t.Helper()
	return startWaiting(t, exec.Command("/bin/cat"), "x") // which ends with its input
}

// startWaiting starts a program that says something once it has got what is said to it first, and then waits for the end of its input.
func startWaiting(t *testing.T, cmd *exec.Cmd, first string) (p *process.Process, finish func()) {
	t.Helper()
	in, out := realtest.StartPiped(t, cmd)
	_, err := io.WriteString(in, first)
	_, err2 := out.Read(make([]byte, 1)) // then it has started
	p, err3 := process.Open(cmd.Process.Pid)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return p, func() {
		p.Close()
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// mappedAndOpen lists a process's mappings and descriptors.
func mappedAndOpen(t *testing.T, p *process.Process) string {
	t.Helper()
	var b strings.Builder
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		fmt.Fprintf(&b, "%x-%x %v %s%s\n", m.Start, m.End, m.Perm, m.Path, m.Special)
	}
	dir := fmt.Sprintf("/proc/%d/fd", p.Pid())
	open, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		name, err := os.Readlink(dir + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", f.Name(), name)
	}
	return b.String()
}

// A recorder that is killed while it maps its arenas leaves nothing that can't be found.
func TestRoomOfAKilledRecorderIsFound(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	p, finish := startCat(t)
	for mapped := range 3 { // arenas
		before := mappedAndOpen(t, p)
		set := ring.Setup{Chunks: 16}
		s, maps := beforeMapping(t, p, set)
		_, err := p.Stop(context.Background(), process.StopOptions{}, func(st *process.Stopped) error {
			if mapped == len(s.Arenas) {
				return s.mapAll(st, maps, set)
			}
			// The next one can't be mapped, and then nobody is there to undo it.
			m := &mapper{s: s, st: st}
			if err := m.open(set); err != nil {
				return err
			}
			if err := m.mapMemory(maps); err != nil {
				return err
			}
			return m.mapArenas(s.Arenas[:mapped])
		})
		s.closeMemory()
		if err != nil {
			t.Fatal(err)
		}
		l, err := FindDead(p)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := l.Remove(context.Background(), p, nil); err != nil || d.Left != "" {
			t.Errorf("%d arenas: %+v, %v", mapped, d, err)
		}
		if now := mappedAndOpen(t, p); now != before {
			t.Errorf("%d arenas: before\n%s\nnow\n%s", mapped, before, now)
		}
	}
	finish()
}

// beforeMapping is a process as it is before memory is mapped into it: its two arenas have their places.
func beforeMapping(t *testing.T, p *process.Process, set ring.Setup) (*Target, []process.Mapping) {
	t.Helper()
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	s := New(p)
	s.Arenas = []*Arena{{Size: 3 * PageSize}, {Size: 5 * PageSize}}
	for i, a := range s.Arenas {
		a.Base = maps[0].Start - uint64(64+64*i)*PageSize
	}
	s.Size, s.Records = ring.Size(set.Chunks), 4*PageSize
	return s, maps
}
