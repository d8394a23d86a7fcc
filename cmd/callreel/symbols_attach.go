package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols/reelnames"
)

// attachFlags are the flags of symbols attach.
type attachFlags struct {
	output    string
	force     bool
	mode      fileMode
	debugDirs []string
	json      bool
}

func newSymbolsAttach() *cobra.Command {
	f := &attachFlags{}
	c := &cobra.Command{
		Use:   "attach REEL [--debug-dir DIR] [-o OUT]",
		Short: "Write names, files and lines into a reel",
		Long: `Attach looks for the symbols of the images that a reel names, by ID, and appends the names, files and lines of its
functions to the reel. Whoever gets it then needs no symbols. Symbols come from the store, the image's file and its debug
files, --debug-dir, and DEBUGINFOD_URLS if that is set. Names that the reel has stay, unless symbols know better ones.

Nothing else of the reel changes, and older versions of callreel read it as before, without the names. With -o the reel
stays as it is and OUT is made. That is needed for a reel that its recorder has not ended: it may still be written.`,
		Example: `  callreel symbols attach slow.reel --debug-dir ./debug
  callreel symbols attach slow.reel -o named.reel`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "leave the reel as it is, and write a copy with names to `OUT`")
	fl.BoolVarP(&f.force, "force", "f", false, "replace OUT if it exists")
	addMode(fl, &f.mode)
	addDebugDirs(c.Flags(), &f.debugDirs)
	fl.BoolVar(&f.json, "json", false, "write what was done, as JSON")
	return c
}

func (f *attachFlags) run(c *cobra.Command, path string) error {
	file, err := reel.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // only read from
	switch {
	case f.output == "" && !file.Closed():
		return usageError("callreel symbols attach: %s was not ended by its recorder, which may still write it; give -o OUT", path)
	case f.output == "" && (f.force || f.mode != 0):
		return usageError("callreel symbols attach: --force and --mode go with -o")
	case sameFile(path, f.output):
		return usageError("callreel symbols attach: %s is the reel itself; leave -o out, or give another file", f.output)
	}
	ctx, stop := untilSignal(c.Context())
	defer stop()
	status := newStatus(c.ErrOrStderr())
	names, err := newReelNames(ctx, c, status, f.debugDirs)
	if err != nil {
		return err
	}
	defer names.Close() // only read from
	names.Lines = reelnames.AllLines
	file.NameBy(names)
	appended, size, named, err := file.Appendix()
	if err != nil {
		return err
	}
	status.clear()
	tellNotFound(status, names)
	if ctx.Err() != nil {
		return fmt.Errorf("callreel symbols attach: %s is as it was: %w", path, ctx.Err())
	}
	out := f.output
	if out == "" {
		out = path
		err = appendTo(path, file.Size(), size, appended)
	} else {
		err = writeOutput(out, f.force, f.mode, func(w io.Writer) error { return copyWith(w, path, size, appended) })
	}
	if err != nil {
		return err
	}
	if cut := file.Size() - size; cut > 0 && (f.output != "" || len(appended) > 0) {
		status.notice("%s at the end of %s are no whole chunk, and were left out", bytesText(cut), path)
	}
	w := c.OutOrStdout()
	if f.json {
		return writeJSON(w, map[string]any{"file": out, "functions": named, "of": file.FunctionCount(), "bytes": len(appended)})
	}
	_, err = fmt.Fprintf(w, "%s: names, files or lines of %s of %s; %s more\n", printable(out), count(uint64(named)), things(uint64(file.FunctionCount()), "function"), bytesText(int64(len(appended))))
	return err
}

// appendTo appends to the first size bytes of a reel, which has was bytes and nobody else may have changed.
func appendTo(path string, was, size int64, b []byte) (err error) {
	if len(b) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("callreel symbols attach: %w; with -o OUT the reel stays as it is", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("callreel symbols attach: %s: another attach writes to it just now", path)
	} // where there are no locks the size has to do
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("callreel symbols attach: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != was {
		return fmt.Errorf("callreel symbols attach: %s has changed meanwhile (%d bytes, %d before)", path, info.Size(), was)
	}
	if err := f.Truncate(size); err != nil { // what an attach before has left that was killed
		return fmt.Errorf("callreel symbols attach: %w", err)
	}
	_, err = f.WriteAt(b, size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("callreel symbols attach: %w", errors.Join(err, f.Truncate(size)))
	}
	return nil
}

// copyWith writes the first size bytes of a file, and what is appended to them.
func copyWith(w io.Writer, path string, size int64, b []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("callreel symbols attach: %w", err)
	}
	defer f.Close() // only read from
	if _, err := io.CopyN(w, f, size); err != nil {
		return fmt.Errorf("callreel symbols attach: copying %s: %w", path, err)
	}
	_, err = w.Write(b)
	return err
}
