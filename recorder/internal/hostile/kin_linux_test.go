package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// watched is a process that is not to be touched.
type watched struct {
	pid  int
	who  string
	stop chan struct{}
	seen chan string
}

// watch looks at a process all the time, for a tracer and for what recorders map.
func watch(pid int, who string) *watched {
	w := &watched{pid: pid, who: who, stop: make(chan struct{}), seen: make(chan string, 1)}
	go func() {
		for {
			select {
			case <-w.stop:
				w.seen <- ""
				return
			default:
			}
			if touched := touchedBy(pid); touched != "" {
				w.seen <- touched
				return
			}
			time.Sleep(200 * time.Microsecond)
		}
	}()
	return w
}

// touchedBy says what a recorder has done to a process, empty if nothing.
func touchedBy(pid int) string {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err.Error()
	}
	for _, task := range tasks {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, task.Name()))
		if err != nil {
			continue
		}
		if _, tracer, _ := strings.Cut(string(status), "\nTracerPid:\t"); !strings.HasPrefix(tracer, "0\n") {
			return "is traced by " + strings.SplitN(tracer, "\n", 2)[0]
		}
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err == nil && (strings.Contains(string(maps), "/memfd:callreel") || strings.Contains(string(maps), "[anon:callreel]")) {
		return "has memory of a recorder's mapped"
	}
	return ""
}

// untouched fails the test if the process has been touched since.
func (w *watched) untouched(t testing.TB) {
	t.Helper()
	close(w.stop)
	if s := <-w.seen; s != "" {
		t.Errorf("process %d, %s, %s", w.pid, w.who, s)
	}
	intact(t, w.pid)
}

// kin records a process that says that others are its children, which they aren't.
func kin(t *testing.T, how string, clone uintptr) {
	program, stranger := knowing(t, "hostile_kin"), target(t, "hostile_victim")
	root := realtest.Start(t, stranger)
	other := realtest.NewUser(t, 1).Start(stranger)
	u := realtest.NewUser(t, 0)
	cmd := u.Command(program, how, strconv.Itoa(root.Pid()), strconv.Itoa(other.Pid()), "recorder", "0", "-1", "4194303")
	cmd.SysProcAttr.Cloneflags = clone
	p := realtest.StartCommand(t, cmd)
	p.WaitLine("ready")
	victims := []*watched{watch(root.Pid(), "root's"), watch(other.Pid(), "another user's")}
	r := callreel(t, "record", "--follow", "-p", strconv.Itoa(p.Pid()), "-f", "hostile_*", "-d", "1s", "--json", "-o", filepath.Join(t.TempDir(), "x.reel"))
	for _, v := range victims {
		v.untouched(t)
	}
	intact(t, p.Pid())
	if r.Code != 0 {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	if p.Finish()["forged"] == 0 {
		t.Error("nothing was forged: the test tests nothing")
	}
}

func TestStrangersAreCalledChildren(t *testing.T) { kin(t, "registry", 0) }

func TestStrangersAreSaidToReplaceTheirProgram(t *testing.T) { kin(t, "exec", 0) }

// A process in a namespace of its own counts others than we do.
func TestStrangersAreCalledChildrenInANamespace(t *testing.T) {
	kin(t, "registry", syscall.CLONE_NEWPID)
}

func TestStrangersAreSaidToReplaceTheirProgramInANamespace(t *testing.T) {
	kin(t, "exec", syscall.CLONE_NEWPID)
}
