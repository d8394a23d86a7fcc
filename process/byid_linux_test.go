package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unused is an ID that no process has.
const unused = 1<<22 + 1 // above PID_MAX_LIMIT

func TestWhatIsToldByAnID(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "3")
	p := openTarget(t, g)
	pid := g.pid()
	if start, err := StartTime(pid, pid); err != nil || start != p.StartTime() {
		t.Errorf("started at %d, %v, want %d", start, err, p.StartTime())
	}
	threads, tids := must(p.Threads()), must(ThreadIDs(pid))
	if len(tids) != len(threads) || len(tids) < 4 {
		t.Errorf("threads %d, want %d and at least 4", len(tids), len(threads))
	}
	for _, info := range threads {
		if start, err := StartTime(pid, info.TID); err != nil || start != info.StartTime {
			t.Errorf("thread %d started at %d, %v, want %d", info.TID, start, err, info.StartTime)
		}
		if name, err := ThreadName(pid, info.TID); err != nil || name != info.Name {
			t.Errorf("thread %d is %q, %v, want %q", info.TID, name, err, info.Name)
		}
		if !slices.Contains(tids, info.TID) {
			t.Errorf("thread %d is not among %v", info.TID, tids)
		}
	}
	if status, err := StatusOf(pid, pid); err != nil || status.TGID != pid {
		t.Errorf("%+v, %v", status, err)
	}
	path, _, err := p.Exe()
	if program, err2 := Program(pid); err != nil || err2 != nil || program != path {
		t.Errorf("it runs %q, %v, want %q, %v", program, err2, path, err)
	}
	if !slices.Contains(must(IDs()), pid) {
		t.Error("it is not among all processes")
	}
	if !slices.Contains(must(Children(os.Getpid())), pid) {
		t.Error("it is not among our children")
	}
	for _, kind := range []string{"pid", "user"} {
		own, err := Namespace(os.Getpid(), kind)
		if its, err2 := Namespace(pid, kind); err != nil || err2 != nil || its != own || own == 0 {
			t.Errorf("%s namespaces %d, %v and %d, %v", kind, own, err, its, err2)
		}
	}
	if ending, ended := Ending(pid); ending || ended {
		t.Errorf("ending %v, ended %v", ending, ended)
	}
	g.finish()
}

func TestOwnStartTime(t *testing.T) {
	own, err := OwnStartTime()
	if start, err2 := StartTime(os.Getpid(), os.Getpid()); err != nil || err2 != nil || start != own || own == 0 {
		t.Errorf("%d, %v, but %d, %v by the ID", own, err, start, err2)
	}
}

func TestNothingIsToldOfNoProcess(t *testing.T) {
	_, start := StartTime(unused, unused)
	_, thread := StartTime(os.Getpid(), unused)
	_, name := ThreadName(unused, unused)
	_, status := StatusOf(unused, unused)
	_, tids := ThreadIDs(unused)
	_, children := Children(unused)
	_, program := Program(unused)
	_, space := Namespace(unused, "pid")
	for what, err := range map[string]error{"start": start, "thread": thread, "name": name, "status": status, "threads": tids,
		"children": children, "program": program, "namespace": space} {
		if !errors.Is(err, ErrNoProcess) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if v, ok := Getenv(unused, "PATH"); v != "" || ok {
		t.Errorf("its PATH is %q", v)
	}
	if ending, ended := Ending(unused); ending || !ended {
		t.Errorf("ending %v, ended %v", ending, ended)
	}
}

func TestEndOfAProcessIsSeen(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer func() { _ = cmd.Wait() }()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitForState(t, pid, 'T')
	if ending, ended := Ending(pid); ending || ended {
		t.Errorf("stopped: ending %v, ended %v", ending, ended)
	}
	_ = in.Close()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ending, ended := Ending(pid); !ending && !ended { // it may have ended by now
		t.Error("a process that is being killed is not ending")
	}
	waitForState(t, pid, 'Z')
	if ending, ended := Ending(pid); !ending || !ended {
		t.Errorf("not reaped: ending %v, ended %v", ending, ended)
	}
}

func TestGetenvOfAProcess(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{"AB=other", "A=", "B=x=y", "LONG=" + strings.Repeat("n", 100_000), "LAST=1"}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	// Start returns when exec has closed its pipe, which is before the kernel has laid out the new environment.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, ok := Getenv(cmd.Process.Pid, "LAST"); ok {
			break
		}
	}
	for _, test := range []struct {
		name, want string
		ok         bool
	}{{"A", "", true}, {"B", "x=y", true}, {"LAST", "1", true}, {"x", "", false}, {"", "", false}} {
		if got, ok := Getenv(cmd.Process.Pid, test.name); got != test.want || ok != test.ok {
			t.Errorf("%s is %q, %v, want %q, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}

func TestFilesThatAProcessSeesAndHasOpen(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"))
	p := openTarget(t, g)
	self := must(os.Executable())
	if !p.HasFile(self) || p.HasFile(filepath.Join(filepath.Dir(self), "no such file")) {
		t.Errorf("%s is seen: %v, or a file beside it that is not there", self, p.HasFile(self))
	}
	all := must(p.Descriptors(func(string) bool { return true }))
	var fds []int
	for _, d := range all {
		if d.FD < 3 && (d.Info == nil || !strings.HasPrefix(d.Name, "pipe:")) {
			t.Errorf("%+v", d)
		}
		fds = append(fds, d.FD)
	}
	if slices.Sort(fds); !reflect.DeepEqual(fds[:min(3, len(fds))], []int{0, 1, 2}) {
		t.Errorf("descriptors %v", fds)
	}
	if some := must(p.Descriptors(func(name string) bool { return name == all[0].Name })); len(some) == 0 || some[0].Name != all[0].Name {
		t.Errorf("%v of %v", some, all)
	}
	if none := must(p.Descriptors(func(string) bool { return false })); len(none) != 0 {
		t.Errorf("%v", none)
	}
	g.finish()
	if _, err := p.Descriptors(func(string) bool { return true }); !errors.Is(err, ErrNoProcess) {
		t.Errorf("of one that has ended: %v", err)
	}
}
