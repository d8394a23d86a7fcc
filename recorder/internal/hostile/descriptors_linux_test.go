package hostile

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// swap records a target of hostile_descriptors so often that a race would have shown itself, and fails the test if that has changed a
// file of root's, or harmed the recorder; or the target, unless it writes into the memory that its own code and events are in.
func swap(t *testing.T, mode string, suicidal bool, file func(u *realtest.User, s *secret) string) {
	u := realtest.NewUser(t, 0)
	s := newSecret(t, u)
	program, arg := target(t, "hostile_descriptors"), file(u, s)
	var p *realtest.Proc
	recorded, ended, tries := 0, 0, races(t)
	if suicidal {
		tries = few
	}
	for i := range tries {
		if p == nil || suicidal && !p.Alive() {
			p = u.Start(program, mode, arg)
		}
		r := callreel(t, "record", "-p", strconv.Itoa(p.Pid()), "-f", "hostile_*", "-d", "10ms", "-o", filepath.Join(t.TempDir(), "x.reel"))
		if err := s.changed(); err != nil {
			t.Fatalf("try %d: %v\n%s", i, err, r.Stderr)
		}
		switch {
		case p.Alive() && !suicidal: // else its probes may stand on memory that it has spoiled
			callreel(t, "detach", "-p", strconv.Itoa(p.Pid())) // what a refused recording has left; mostly nothing
			intact(t, p.Pid())
		case p.Alive():
		case suicidal:
			ended++
		default:
			t.Fatalf("try %d: the target has ended: %s\n%s", i, p.Ended(), r.Stderr)
		}
		if t.Failed() {
			return
		}
		if r.Code == 0 {
			recorded++
		} else if recorded == 0 && i == 0 {
			t.Logf("%s", r.Stderr)
		}
	}
	t.Logf("%d of %d recorded, %d targets ended", recorded, tries, ended)
	if !p.Alive() || suicidal {
		return
	}
	if n := p.Finish()["swapped"]; n == 0 {
		t.Error("no descriptor was swapped: the test tests nothing")
	}
}

func TestDescriptorIsSwappedForAFileOfRoots(t *testing.T) {
	swap(t, "path", false, func(_ *realtest.User, s *secret) string { return s.path })
}

func TestDescriptorIsSwappedForAFIFO(t *testing.T) {
	swap(t, "path", false, func(u *realtest.User, _ *secret) string {
		path := filepath.Join(u.Folder, "fifo")
		if err := syscall.Mkfifo(path, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	})
}

func TestDescriptorIsSwappedForADevice(t *testing.T) {
	swap(t, "path", false, func(*realtest.User, *secret) string { return "/dev/full" })
}

func TestDescriptorIsSwappedForAFileOpenForReading(t *testing.T) {
	swap(t, "read", false, func(u *realtest.User, s *secret) string {
		if err := os.Chmod(s.path, 0o644); err != nil {
			t.Fatal(err)
		}
		return s.path
	})
}

func TestDescriptorIsSwappedForAnotherMemfd(t *testing.T) {
	swap(t, "memfd", false, func(*realtest.User, *secret) string { return "" })
}

func TestRingMemoryIsTruncated(t *testing.T) {
	swap(t, "truncate", false, func(*realtest.User, *secret) string { return "" })
}

func TestRingMemoryIsTruncatedByAnotherProcess(t *testing.T) {
	swap(t, "thief", false, func(*realtest.User, *secret) string { return "" })
}

func TestRingMemoryIsPunched(t *testing.T) {
	swap(t, "punch", true, func(*realtest.User, *secret) string { return "" })
}

func TestRingMemoryIsWritten(t *testing.T) {
	swap(t, "write", true, func(*realtest.User, *secret) string { return "" })
}

func TestRingMemoryIsMappedAndWritten(t *testing.T) {
	swap(t, "map", true, func(*realtest.User, *secret) string { return "" })
}

func TestRingMemoryIsSealedFirst(t *testing.T) {
	swap(t, "seal", false, func(*realtest.User, *secret) string { return "" })
}
