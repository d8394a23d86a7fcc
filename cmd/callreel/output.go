package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/internal/outfile"
)

// writeOutput makes the file at path from what write writes; it has its name when it is whole. A file that is there is replaced only with
// force; after a failure no new file is left. What isn't a regular file (a pipe, a device) is written to.
func writeOutput(path string, force bool, mode fileMode, write func(io.Writer) error) error {
	return outputError(path, outfile.Write(path, outfile.Options{Force: force, Mode: fs.FileMode(mode), Into: true}, write))
}

// outputError makes an error about a file that was to be made the user's.
func outputError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return usageError("callreel: %s: %w; --force replaces it", path, fs.ErrExist)
	case errors.Is(err, outfile.ErrFolder):
		return usageError("callreel: %s: is a directory; give -o a file", path)
	}
	return err
}

// fileMode is a flag that takes the mode of files that are written, in octal. 0 is none given: those are for their owner alone.
type fileMode fs.FileMode

func (m *fileMode) String() string {
	if *m == 0 {
		return ""
	}
	return fmt.Sprintf("%04o", uint32(*m))
}

func (m *fileMode) Type() string { return "MODE" }

// Set reads a mode. Its owner can always read and write a file, and nobody can execute it.
func (m *fileMode) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n&^0o666 != 0 || n&0o600 != 0o600 {
		return fmt.Errorf("%q is not a mode for files of recorded data: octal digits from 0600 to 0666, such as 0640", text)
	}
	*m = fileMode(n)
	return nil
}

// addMode adds --mode.
func addMode(fl *pflag.FlagSet, m *fileMode) {
	fl.Var(m, "mode", "permissions of the files that are written, in octal; the umask is ignored (default 0600)")
}
