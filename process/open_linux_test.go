package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

func TestOpenRefusesWhatCannotBeTraced(t *testing.T) {
	zombie := exec.Command("true")
	realtest.Need(t, "true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	waitForState(t, zombie.Process.Pid, 'Z')
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	g := startTarget(t, build(t, "idle.c", "gcc"), "1")
	tids, err := taskIDs(g.pid())
	if err != nil || len(tids) != 2 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	traced := startTarget(t, build(t, "idle.c", "gcc"))
	holder := startRole(t, "hold", traced.pid())
	if line := holder.line(); line != "holding" {
		t.Fatalf("holder said %q", line)
	}
	for _, c := range []struct {
		name string
		pid  int
		want error
		says string
	}{
		{"zero", 0, ErrNoProcess, "positive"},
		{"ended", ended.Process.Pid, ErrNoProcess, ""},
		{"zombie", zombie.Process.Pid, ErrZombie, "true"},
		{"zombie is no process", zombie.Process.Pid, ErrNoProcess, ""},
		{"self", os.Getpid(), ErrSelf, ""},
		{"thread", max(tids[0], tids[1]), ErrThreadGroup, "belongs to process"},
		{"traced", traced.pid(), ErrTraced, filepath.Base(holder.cmd.Path)[:0] + "end that tracer"},
	} {
		p, err := Open(c.pid)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.want, c.says)
		}
		if p != nil {
			t.Errorf("%s: a process was returned", c.name)
		}
	}
	killRole(holder)
	traced.finish()
	g.finish()
}

func TestOpenRefusesKernelThreads(t *testing.T) {
	const kthreadd = 2
	st, err := readStat(kthreadd, kthreadd)
	if err == nil && st.flags&flagKernelThread == 0 {
		err = os.ErrNotExist // a PID namespace has another process there
	}
	realtest.NeedThat(t, "a view of kernel threads", err)
	if _, err := Open(kthreadd); !errors.Is(err, ErrKernelThread) {
		t.Errorf("kthreadd: %v", err)
	}
}

func waitForState(t *testing.T, pid int, state byte) {
	t.Helper()
	for range 1000 {
		if st, err := readStat(pid, pid); err == nil && st.state == state {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("process %d never came to state %c", pid, state)
}

func TestForeignProgramsAreToldByTheirHeader(t *testing.T) {
	header := func(class, data byte, machine byte) (h [20]byte) {
		copy(h[:], "\x7fELF")
		h[4], h[5], h[18] = class, data, machine
		return h
	}
	own := byte(arch.elfMachine())
	for _, c := range []struct {
		name   string
		header [20]byte
		want   error
	}{
		{"this processor's", header(2, 1, own), nil},
		{"i386", header(1, 1, 3), ErrForeignArch},
		{"arm", header(1, 1, 40), ErrForeignArch},
		{"32 bits of it", header(1, 1, own), ErrForeignArch},
		{"another's", header(2, 1, own^1), ErrForeignArch},
		{"big-endian", header(2, 2, own), ErrForeignArch},
		{"not ELF", [20]byte{}, ErrForeignArch},
	} {
		if err := checkELFHeader(c.header); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestRefusalNamesWhatWouldHelp(t *testing.T) {
	st := Status{Name: "db", UIDs: [4]int{os.Getuid() + 1, os.Getuid() + 1, os.Getuid() + 1, 0}}
	err := notPermitted(os.Getpid(), st, unix.EACCES)
	if !errors.Is(err, ErrNotPermitted) || !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "CAP_SYS_PTRACE") {
		t.Errorf("%v", err)
	}
	for scope, want := range map[int]string{1: "sysctl kernel.yama.ptrace_scope=0", 2: "CAP_SYS_PTRACE", 3: "next boot"} {
		if got := yamaAdvice(scope); !strings.Contains(got, want) {
			t.Errorf("scope %d: %q", scope, got)
		}
	}
}

func TestOtherUsersProcessIsNotPermitted(t *testing.T) {
	realtest.Need(t, realtest.Superuser, realtest.Setpriv)
	g := startTarget(t, build(t, "idle.c", "gcc"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary may lie where others cannot look; a copy of it does not.
	copied := filepath.Join(t.TempDir(), "copy")
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(copied); dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--clear-groups", copied, itoa(g.pid()))
	cmd.Env = append(os.Environ(), "PROCESS_TEST_ROLE=stop")
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "not permitted: it runs as user 0 and we as 65534") {
		t.Errorf("%v: %s", err, text)
	}
	g.finish()
}

func TestProcessTellsWhoItIs(t *testing.T) {
	path := build(t, "idle.c", "gcc")
	g := startTarget(t, path, "2")
	p := openTarget(t, g)
	exe, deleted, err := p.Exe()
	if err != nil || exe != path || deleted {
		t.Errorf("exe %q, %v, %v; want %q", exe, deleted, err, path)
	}
	if got := p.Comm(); got != filepath.Base(path) {
		t.Errorf("comm %q", got)
	}
	args, err := p.Cmdline()
	if err != nil || len(args) != 2 || args[0] != path || args[1] != "2" {
		t.Errorf("command line %q, %v", args, err)
	}
	threads, err := p.Threads()
	if err != nil || len(threads) != 3 {
		t.Errorf("threads %+v, %v", threads, err)
	}
	for _, info := range threads {
		if info.NSTID != info.TID || info.StartTime < p.StartTime() || info.Worker {
			t.Errorf("thread %+v", info)
		}
	}
	status, err := p.Status()
	if err != nil || status.TGID != g.pid() || status.UIDs[0] != os.Getuid() || status.TracerPID != 0 {
		t.Errorf("status %+v, %v", status, err)
	}
	auxv, err := p.Auxv()
	if err != nil || auxv.PageSize != uint64(os.Getpagesize()) || auxv.Base == 0 || auxv.VDSO == 0 {
		t.Errorf("auxv %+v, %v", auxv, err)
	}
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	in := func(addr uint64) (m Mapping) {
		for _, m = range maps {
			if m.Contains(addr) {
				break
			}
		}
		return m
	}
	if m := in(auxv.Entry); m.Path != path || m.Perm.String() != "r-xp" {
		t.Errorf("entry point in %+v", m)
	}
	if m := in(auxv.VDSO); m.Special != "[vdso]" {
		t.Errorf("vdso in %+v", m)
	}
	if !p.Alive() {
		t.Error("not alive")
	}
	g.finish()
	if p.Alive() {
		t.Error("alive after its end")
	}
	if _, err := p.Maps(); !errors.Is(err, ErrNoProcess) {
		t.Errorf("maps of an ended process: %v", err)
	}
	if _, err := p.ReadAt(make([]byte, 8), auxv.Entry); !errors.Is(err, ErrNoProcess) {
		t.Errorf("memory of an ended process: %v", err)
	}
}

func TestMappedFileIsFoundAfterItWasReplaced(t *testing.T) {
	original := build(t, "idle.c", "gcc")
	data, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "moved")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	g := startTarget(t, path)
	p := openTarget(t, g)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if exe, deleted, err := p.Exe(); err != nil || exe != path || !deleted {
		t.Errorf("exe %q, %v, %v", exe, deleted, err)
	}
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range maps {
		if m.Path != path {
			continue
		}
		seen++
		if !m.Deleted {
			t.Errorf("%+v is not marked as deleted", m)
		}
		name, err := p.ExeFile(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != string(data) {
			t.Errorf("%s holds %d bytes, %v", name, len(got), err)
		}
	}
	if seen == 0 {
		t.Error("program not mapped")
	}
	if _, err := p.ExeFile(Mapping{Special: "[heap]"}); !errors.Is(err, ErrFileGone) {
		t.Errorf("heap has a file: %v", err)
	}
	g.finish()
}

func TestMemoryErrorsNameTheAddress(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"))
	p := openTarget(t, g)
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	last := maps[0]
	for _, m := range maps[1:] {
		if m.Start != last.End {
			break
		}
		last = m
	}
	buf := make([]byte, 8192)
	n, err := p.ReadAt(buf, last.End-4096)
	if n != 4096 || !errors.Is(err, ErrNoMapping) || !strings.Contains(err.Error(), hexAddr(last.End)) {
		t.Errorf("read over the end: %d, %v; want 4096 and %s", n, err, hexAddr(last.End))
	}
	if n, err := p.ReadVec([]Vec{{last.Start, buf[:8]}, {last.End, buf[:8]}, {last.Start, buf[:8]}}); n != 1 || !errors.Is(err, ErrNoMapping) {
		t.Errorf("vectored read over the end: %d, %v", n, err)
	}
	many := make([]Vec, 3000)
	for i := range many {
		many[i] = Vec{maps[0].Start + uint64(i%4096), buf[i : i+1]}
	}
	if n, err := p.ReadVec(many); n != len(many) || err != nil || string(buf[:4]) != "\x7fELF" {
		t.Errorf("vectored read: %d, %v, %q", n, err, buf[:4])
	}
	if _, err := p.ReadAt(buf, ^uint64(0)-100); !errors.Is(err, ErrNoMapping) {
		t.Errorf("read of a kernel address: %v", err)
	}
	if _, err := p.WriteAt(buf, 0); !errors.Is(err, ErrNoMapping) {
		t.Errorf("write to address 0: %v", err)
	}
	g.finish()
}

func TestCodeIsWrittenAndRestored(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"))
	p := openTarget(t, g)
	auxv, err := p.Auxv()
	if err != nil {
		t.Fatal(err)
	}
	undo, err := p.overwrite(auxv.Entry, []byte{0xcc, 0xcc})
	if err != nil {
		t.Fatal(err)
	}
	if !p.holds(auxv.Entry, []byte{0xcc, 0xcc}) {
		t.Error("code was not written")
	}
	if err := undo(); err != nil || p.holds(auxv.Entry, []byte{0xcc}) {
		t.Errorf("code was not restored: %v", err)
	}
	g.finish()
}

func TestManyProcessesOpenAndClose(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"))
	before := openFiles(t)
	for range 50 {
		p, err := Open(g.pid())
		if err != nil {
			t.Fatal(err)
		}
		stop(t, p, doNothing)
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	if after := openFiles(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
	g.finish()
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
