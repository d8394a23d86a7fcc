package recorder_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// What nohup and background jobs of sh let a program ignore, a recorded command ignores too, and nothing else.
func TestACommandIgnoresTheSignalsThatItWouldWithoutUs(t *testing.T) {
	needLive(t)
	realtest.DefaultSignals(t, syscall.SIGINT, syscall.SIGHUP)
	for _, signals := range []string{"", "HUP", "INT QUIT", "HUP INT QUIT"} {
		t.Run(signals, func(t *testing.T) {
			show := func(through ...string) string {
				script := `exec "$@"`
				if signals != "" {
					script = "trap '' " + signals + "; " + script
				}
				args := append([]string{"-c", script, "sh"}, append(through, "grep", "^SigIgn:", "/proc/self/status")...)
				out, err := exec.Command("sh", args...).Output()
				if err != nil {
					t.Fatalf("%v: %v", args, err)
				}
				return string(out)
			}
			reel := filepath.Join(t.TempDir(), "grep.reel")
			alone, recorded := show(), show(realtest.CallreelPath(t), "record", "-o", reel, "--")
			if alone != recorded {
				t.Errorf("alone %srecorded %s", alone, recorded)
			}
		})
	}
}

// counting says how often it was told to end, after two seconds.
const counting = `n=0; trap 'n=$((n+1))' INT TERM HUP QUIT; echo ready
i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done; echo "told $n times"`

// Ctrl-C and Ctrl-\ reach the whole foreground group of a terminal, a recorded command too; it isn't told again.
func TestATerminalsSignalReachesTheCommandOnce(t *testing.T) {
	needLive(t)
	realtest.DefaultSignals(t, syscall.SIGINT)
	for name, key := range map[string]string{"Ctrl-C": "\x03", "Ctrl-\\": "\x1c"} {
		t.Run(name, func(t *testing.T) {
			terminal, end := openTerminal(t)
			reel := filepath.Join(t.TempDir(), "sh.reel")
			cmd := exec.Command(realtest.CallreelPath(t), "record", "-o", reel, "--", "sh", "-c", counting)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = end, end, end
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			end.Close()
			said := make(chan string)
			ready := make(chan bool)
			go func() { said <- readTerminal(terminal, ready) }()
			if <-ready {
				if _, err := io.WriteString(terminal, key); err != nil {
					t.Error(err)
				}
			}
			text := <-said
			if err := cmd.Wait(); err != nil || !strings.Contains(text, "told 1 times") {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// Signals that are sent to the recorder alone are passed on.
func TestASignalSentToTheRecorderIsPassedOnToTheCommand(t *testing.T) {
	needLive(t)
	// make test may run under nohup, and the command is sh, which can't catch what is ignored.
	realtest.DefaultSignals(t, syscall.SIGINT, syscall.SIGHUP)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			r := startCommand(t, nil, "sh", "-c", counting)
			r.WaitLine("ready")
			eventually(t, "recording", func() bool { _, err := os.Stat(r.file); return err == nil })
			r.Signal(sig)
			if code := r.Wait(); code != 0 {
				t.Errorf("code %d\n%s", code, r.Stderr())
			}
			if text := strings.Join(r.Stdout(), " "); !strings.Contains(text, "told 1 times") {
				t.Errorf("%s", text)
			}
			r.result(t)
		})
	}
}

// openTerminal makes a pseudo-terminal (pty(7)).
func openTerminal(t *testing.T) (terminal, end *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if end, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return terminal, end
}

// readTerminal returns all that is written to a terminal until its last user is gone, and says when "ready" is.
func readTerminal(terminal *os.File, ready chan<- bool) string {
	var text strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := terminal.Read(buf)
		text.Write(buf[:n])
		if ready != nil && (err != nil || strings.Contains(text.String(), "ready")) {
			ready <- err == nil
			ready = nil
		}
		if err != nil {
			return text.String()
		}
	}
}
