package realtest

import (
	"bytes"
	"io"
	"os/exec"
	"testing"
)

// Output runs a program that has to succeed in a folder, and returns what it prints.
func Output(t testing.TB, dir string, program Capability, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(Tool(t, program), args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return string(out)
}

// StartPiped starts a command and returns its ends of standard input and output. The caller waits for it.
func StartPiped(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	Must(t, err)
	out, err = cmd.StdoutPipe()
	Must(t, err)
	Must(t, cmd.Start())
	return in, out
}
