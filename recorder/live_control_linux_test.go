package recorder_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/internal/runtimedir"
	"github.com/callreel/callreel/reel"
)

// waitFile waits until there is a file.
func waitFile(t *testing.T, path string, p *realtest.Proc) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Since(began) > time.Minute || !p.Alive() {
			t.Fatalf("no %s\n%s", path, p.Stderr())
		}
	}
}

// copyFor puts a program where everybody can start it.
func copyFor(t *testing.T, dir, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// strangers is a target of another user's, and what that user's recorder runs as.
type strangers struct {
	t            *testing.T
	home, public string // public is the folder that home is in
	callreel     string
	env          []string
	target       *realtest.Proc
}

// startStrangers starts the target armed as another user, whose XDG_RUNTIME_DIR is longer than a socket's address.
func startStrangers(t *testing.T) *strangers {
	t.Helper()
	needLive(t, realtest.Superuser)
	s := &strangers{t: t, home: realtest.StrangersFolder(t)}
	s.public = filepath.Dir(s.home)
	session := filepath.Join(s.home, strings.Repeat("long-", 40))
	if err := errors.Join(os.Mkdir(session, 0o700), os.Chown(session, realtest.Stranger, realtest.Stranger)); err != nil {
		t.Fatal(err)
	}
	s.callreel = copyFor(t, s.public, realtest.CallreelPath(t))
	s.env = append(os.Environ(), "XDG_RUNTIME_DIR="+session)
	s.target = s.start(copyFor(t, s.public, realtest.Build(t, "armed")), filepath.Join(s.home, "log"))
	s.target.WaitLine("ready")
	return s
}

// start starts a program as the other user.
func (s *strangers) start(path string, args ...string) *realtest.Proc {
	s.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = s.env, s.home
	realtest.BeStranger(cmd)
	return realtest.StartCommand(s.t, cmd)
}

// Root asks the recorder of another user's process, wherever that keeps its socket, and the socket's path may be too long for an address.
func TestRootAsksTheRecorderOfAnotherUser(t *testing.T) {
	s := startStrangers(t)
	dumps := filepath.Join(s.home, "dumps")
	r := s.start(s.callreel, append([]string{"record", "--when", "request > 1h", "-m", "armed*", "-f", "work_*", "-f", "request", "-o", dumps}, pidFlag(s.target)...)...)
	waitFile(t, dumps, r)
	for n, last := range []string{"20ms", "30ms"} {
		file := strings.TrimSpace(realtest.MustCallreel(t, append([]string{"dump", "--last", last}, pidFlag(s.target)...)...).Stdout)
		if want := filepath.Join(dumps, fmt.Sprintf("slow-%04d.reel", n+1)); file != want {
			t.Errorf("the dump is %q, not %q", file, want)
		}
		if fi, err := os.Lstat(file); err != nil || fi.Mode() != 0o600 {
			t.Errorf("%s: %v %v", file, fi.Mode(), err)
		}
	}
	if a := realtest.Callreel(t, append([]string{"set", "-x", "work_a"}, pidFlag(s.target)...)...); a.Code != 0 || !strings.Contains(a.Stdout, "1 changed") {
		t.Errorf("set: %+v", a)
	}
	if fi, err := os.Lstat(dumps); err != nil || fi.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the folder: %v %v", fi.Mode(), err)
	}
	r.Signal(os.Interrupt)
	if code := r.Wait(); code != 0 {
		t.Errorf("code %d\n%s", code, r.Stderr())
	}
	if left, err := filepath.Glob(filepath.Join(s.home, "long-*", "callreel", "control-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	wantUntouched(t, s.target.Pid())
}

// TestNobodyTakesTheSocketOfARecorder: another user who is there first, with the names that the user can have, changes nothing.
func TestNobodyTakesTheSocketOfARecorder(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_ROLE") != "" {
		l, err := net.Listen("unix", "@callreel-"+os.Getenv("CALLREEL_TEST_PID")) // as it was called once
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("ready")
		conn, err := l.Accept()
		fmt.Println("asked", conn, err)
		return
	}
	needLive(t, realtest.Superuser)
	a := startArmed(t)
	cmd := realtest.AsStranger(t, "TestNobodyTakesTheSocketOfARecorder", "squat")
	cmd.Env = append(cmd.Env, "CALLREEL_TEST_PID="+strconv.Itoa(a.Pid()))
	squatter := realtest.StartCommand(t, cmd)
	squatter.WaitLine("ready")
	r := a.arm(t, "--when", "request > 1h")
	file := strings.TrimSpace(realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(a)...)...).Stdout)
	if file != filepath.Join(r.File, "slow-0001.reel") {
		t.Errorf("%q", file)
	}
	stopArmed(t, r)
	if strings.Contains(r.Stderr(), "can't reach") {
		t.Error(r.Stderr())
	}
	if !squatter.Alive() {
		t.Errorf("the squatter was asked: %q", squatter.Stdout())
	}
	a.Finish()
}

// TestRootIsLedToNobodyElse: whatever a user puts under the name of the socket, root doesn't talk to anybody else.
func TestRootIsLedToNobodyElse(t *testing.T) {
	s := startStrangers(t)
	name := controlNameOf(t, s.target.Pid())
	folder := filepath.Join(strings.TrimPrefix(s.env[len(s.env)-1], "XDG_RUNTIME_DIR="), "callreel")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, realtest.Stranger, realtest.Stranger)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(s.public, "service")
	l, err := net.Listen("unix", socket) // root's own, which does what it is told
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			asked <- line
			_, _ = conn.Write([]byte("{}\n"))
			_ = conn.Close()
		}
	}()
	plant := map[string]func(at string) error{
		"a link":      func(at string) error { return os.Symlink(socket, at) },
		"a hard link": func(at string) error { return os.Link(socket, at) }, // by root here: what fs.protected_hardlinks = 0 permits
		// A socket of the user's own at which root listens: the descriptor can be handed over.
		"its own socket with another who listens": func(at string) error { return bindFor(t, at, asked) },
		"a folder":       func(at string) error { return os.Mkdir(at, 0o755) },
		"nobody listens": func(at string) error { return unix.Mknod(at, unix.S_IFSOCK|0o777, 0) },
	}
	for what, f := range plant {
		t.Run(what, func(t *testing.T) {
			at := filepath.Join("/proc/self/fd", strconv.Itoa(openFolder(t, folder)), name) // longer than an address otherwise
			if err := f(at); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(at)
			if what != "a hard link" {
				if err := os.Lchown(at, realtest.Stranger, realtest.Stranger); err != nil {
					t.Fatal(err)
				}
			}
			for range realtest.Repeats(t, 5) {
				a := realtest.Callreel(t, append([]string{"dump"}, pidFlag(s.target)...)...)
				if a.Code != 3 || a.Stdout != "" {
					t.Fatalf("%+v", a)
				}
			}
			select {
			case line := <-asked:
				t.Errorf("root's service was told %q", line)
			default:
			}
		})
	}
}

// bindFor makes a socket at a path at which this process, root's, listens.
func bindFor(t *testing.T, at string, asked chan<- string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				asked <- line
			}
			_ = conn.Close()
		}
	}()
	return nil
}

func openFolder(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// controlNameOf is the name that the socket of a process's recorder has.
func controlNameOf(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var ns unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid), &ns); err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fmt.Sprintf("control-%d-%d-%s", ns.Ino, pid, fields[19])
}

// hostileAnswers are what a user's own server may say to root.
func hostileAnswers(secret string) map[string]string {
	return map[string]string{
		"a file of root's":    `{"dumped":{"File":` + strconv.Quote(secret) + `}}`,
		"terminal's commands": `{"dumped":{"File":"\u001b]0;x\u0007"}}`,
		"an error":            `{"error":"\u001b[2J"}`,
		"no JSON":             `{{{`,
		"no end":              strings.Repeat(" ", 1<<17),
		"nothing":             ``,
	}
}

// TestAnAnswerIsText: what a recorder answers, whoever it is, has no consequences but to be shown.
func TestAnAnswerIsText(t *testing.T) {
	if role := os.Getenv("CALLREEL_TEST_ROLE"); role != "" {
		serveAnswer(t, hostileAnswers(os.Getenv("CALLREEL_TEST_SECRET"))[role], os.Getenv("CALLREEL_TEST_SOCKET"))
		return
	}
	s := startStrangers(t)
	folder := filepath.Join(strings.TrimPrefix(s.env[len(s.env)-1], "XDG_RUNTIME_DIR="), "callreel")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, realtest.Stranger, realtest.Stranger)); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(s.public, "secret")
	if err := os.WriteFile(secret, []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what := range hostileAnswers(secret) {
		t.Run(what, func(t *testing.T) {
			cmd := realtest.AsStranger(t, "TestAnAnswerIsText", what)
			cmd.Env = append(cmd.Env, "CALLREEL_TEST_SECRET="+secret, "CALLREEL_TEST_SOCKET="+filepath.Join(folder, controlNameOf(t, s.target.Pid())))
			server := realtest.StartCommand(t, cmd)
			server.WaitLine("ready")
			before, err := os.Stat(secret)
			if err != nil {
				t.Fatal(err)
			}
			a := realtest.Callreel(t, append([]string{"dump"}, pidFlag(s.target)...)...)
			if strings.ContainsAny(a.Stdout+a.Stderr, "\x1b\x07") || (a.Code == 0) != strings.Contains(hostileAnswers(secret)[what], "dumped") {
				t.Errorf("%+v", a)
			}
			after, err := os.Stat(secret)
			if err != nil || after.ModTime() != before.ModTime() || after.Mode() != before.Mode() {
				t.Errorf("the file was changed: %v", err)
			}
			server.Signal(os.Kill)
			server.Wait()
		})
	}
}

// serveAnswer answers each request with a text.
func serveAnswer(t *testing.T, answer, socket string) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket))
	_ = os.Remove(at) // of the test before
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	for {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = conn.Write([]byte(answer + "\n"))
		_ = conn.Close()
	}
}

// A recorder that was killed leaves a socket, which nobody takes for a recorder and the next one removes.
func TestSocketsOfKilledRecordersAreRemoved(t *testing.T) {
	needLive(t)
	folder, err := runtimedir.Own()
	if err != nil {
		t.Fatal(err)
	}
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 1h")
	socket := filepath.Join(folder, controlNameOf(t, a.Pid()))
	if fi, err := os.Lstat(socket); err != nil || fi.Mode().Type() != fs.ModeSocket {
		t.Fatalf("%v", err)
	}
	r.Signal(os.Kill)
	r.Wait()
	if d := realtest.Callreel(t, append([]string{"set", "--keep", "1s"}, pidFlag(a)...)...); d.Code != 3 {
		t.Errorf("%+v", d)
	}
	b := startArmed(t)
	other := b.arm(t, "--when", "request > 1h")
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of the one that was killed: %v", err)
	}
	r = a.arm(t, "--when", "request > 1h") // which removes what the one before has left in the process
	for _, p := range []*armedTarget{a, b} {
		realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(p)...)...)
	}
	for _, r := range []*realtest.Recording{r, other} {
		stopArmed(t, r)
	}
	for _, p := range []*armedTarget{a, b} {
		if _, err := os.Lstat(filepath.Join(folder, controlNameOf(t, p.Pid()))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a socket is left: %v", err)
		}
		p.Finish()
	}
}

// Two processes that have the same ID, each in a PID namespace of its own, have recorders that are asked apart from each other: from
// where these are and from outside.
func TestRecordersInPIDNamespaces(t *testing.T) {
	needLive(t, realtest.Superuser)
	target, callreel := realtest.Build(t, "armed"), realtest.CallreelPath(t)
	type inside struct {
		*realtest.Proc
		dir        string
		inner, pid int
	}
	var all []*inside
	for range 2 {
		in := &inside{dir: t.TempDir()}
		script := `mount -t proc proc /proc || exit 1
mkfifo "$1/stdin" && exec 3<>"$1/stdin"
"$2" "$1/log" <&3 >"$1/out" & pid=$!
until grep -q ready "$1/out"; do sleep 0.01; done
"$3" record --when 'request > 1h' -m 'armed*' -f 'work_*' -o "$1/dumps" -p $pid 2>"$1/said" & recorder=$!
until test -e "$1/dumps"; do kill -0 $recorder || exit 1; sleep 0.01; done
echo ready $pid
read line
"$3" dump -p $pid
kill -INT $recorder; wait $recorder; echo ended $?
`
		cmd := exec.Command("/bin/sh", "-c", script, "sh", in.dir, target, callreel)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
		in.Proc = realtest.StartCommand(t, cmd)
		words := strings.Fields(in.WaitLine("ready"))
		in.inner, _ = strconv.Atoi(words[len(words)-1])
		in.pid = childAs(t, in.Proc.Pid(), in.inner)
		all = append(all, in)
	}
	if all[0].inner != all[1].inner {
		t.Fatalf("inside, the processes are %d and %d: they should have the same ID", all[0].inner, all[1].inner)
	}
	for _, in := range all {
		file := strings.TrimSpace(realtest.MustCallreel(t, "dump", "-p", strconv.Itoa(in.pid)).Stdout)
		if file != filepath.Join(in.dir, "dumps", "slow-0001.reel") {
			t.Errorf("from outside: %s, want one in %s", file, in.dir)
		}
	}
	for _, in := range all {
		in.Say("dump")
		file := in.WaitLine(in.dir)
		if file != filepath.Join(in.dir, "dumps", "slow-0002.reel") {
			t.Errorf("from inside: %s", file)
		}
		in.WaitLine("ended 0")
	}
}

// childAs finds the process below another that has an ID in its own PID namespace.
func childAs(t *testing.T, parent, inner int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		status, err := os.ReadFile("/proc/" + field + "/status")
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(status), "\n") {
			if ids, ok := strings.CutPrefix(line, "NSpid:"); ok && strings.HasSuffix(ids, "\t"+strconv.Itoa(inner)) {
				pid, _ := strconv.Atoi(field)
				return pid
			}
		}
	}
	t.Fatalf("no child of %d is %d inside", parent, inner)
	return 0
}

// dumpAnswer is what dump --json says.
type dumpAnswer struct {
	File string `json:"file"`
}

// TestRecordersWithOneFolder: two armed recorders with the same folder take different numbers, and all dumps are there.
func TestRecordersWithOneFolder(t *testing.T) {
	for _, force := range []bool{false, true} {
		t.Run(fmt.Sprintf("force %v", force), func(t *testing.T) {
			needLive(t)
			dir := filepath.Join(t.TempDir(), "dumps")
			const each = 12
			var targets []*armedTarget
			var recorders []*realtest.Proc
			for range 2 {
				a := startArmed(t)
				args := append([]string{"record", "--json", "--when", "request > 1h", "--ring", "4M", "-m", "armed*", "-f", "work_*", "-o", dir}, pidFlag(a)...)
				if force {
					args = append(args, "--force")
				}
				r := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), args...))
				for began := time.Now(); !strings.Contains(r.Stderr(), "armed: "); time.Sleep(2 * time.Millisecond) {
					if !r.Alive() || time.Since(began) > time.Minute {
						t.Fatal(r.Stderr())
					}
				}
				targets, recorders = append(targets, a), append(recorders, r)
			}
			type answer struct {
				file string
				pid  int
			}
			answers := make(chan answer)
			for _, a := range targets {
				go func() {
					for range each {
						d := realtest.Callreel(t, append([]string{"dump", "--json", "--last", "1ms"}, pidFlag(a)...)...)
						var got dumpAnswer
						if err := json.Unmarshal([]byte(d.Stdout), &got); err != nil {
							t.Errorf("%v: %+v", err, d)
						}
						answers <- answer{got.File, a.Pid()}
					}
				}()
			}
			seen := map[string]int{}
			for range 2 * each {
				a := <-answers
				if seen[a.file] != 0 {
					t.Errorf("two dumps were both told to be %s", a.file)
				}
				seen[a.file] = a.pid
			}
			for file, pid := range seen {
				f, err := reel.Open(file)
				if err != nil {
					t.Error(err)
					continue
				}
				if got := f.Header().PID; got != pid {
					t.Errorf("%s is of process %d, not %d", file, got, pid)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 2*each {
				t.Errorf("%d files, want %d: %v", len(entries), 2*each, err)
			}
			for _, r := range recorders {
				r.Signal(os.Interrupt)
				if code := r.Wait(); code != 0 {
					t.Errorf("code %d: %s", code, r.Stderr())
				}
			}
			for _, a := range targets {
				a.Finish()
			}
		})
	}
}
