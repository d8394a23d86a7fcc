package needed

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
)

var errScripts = errors.New("interpreters of interpreters without end")

// Program is the program that runs when a file is started: itself, or for a script its interpreter (execve(2)).
func Program(path string) (string, error) {
	const maxScripts = 5 // that Linux follows
	for range maxScripts {
		interpreter, err := interpreterOf(path)
		if err != nil || interpreter == "" {
			return path, err
		}
		path = interpreter
	}
	return "", errScripts
}

// interpreterOf is the interpreter of a script, "" if the file is none.
func interpreterOf(path string) (string, error) {
	path, err := exec.LookPath(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening another may wait
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read from
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, ok := bytes.CutPrefix(head[:n], []byte("#!"))
	if !ok {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	if words := bytes.Fields(line); len(words) > 0 {
		return string(words[0]), nil
	}
	return "", nil
}
