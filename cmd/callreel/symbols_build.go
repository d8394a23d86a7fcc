package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// buildFlags are the flags of symbols build.
type buildFlags struct {
	output    string
	force     bool
	mode      fileMode
	debugDirs []string
	arch      string
	memory    memoryLimit
	json      bool
}

func newSymbolsBuild() *cobra.Command {
	f := &buildFlags{}
	c := &cobra.Command{
		Use:   "build [-f] [-o OUT] [--debug-dir DIR] [--arch ARCH] FILE | DIR",
		Short: "Compile the symbol map of a file, or of every image below a folder",
		Long: `Build compiles a symbol map from an ELF or Mach-O file and its debug files (build ID, .gnu_debuglink, dwz, split DWARF,
dSYM). OUT is NAME.symmap in the current folder, unless -o says otherwise; - is stdout.

For a folder it compiles every image below it into a store, a folder in which symbolize finds maps by ID. OUT is your
user's store, unless -o says otherwise. Maps that the store has already are left alone. If an image fails, the others
are compiled all the same, and the exit code is 1.

Maps are readable by you alone. --mode 0644 gives them that mode, and opens folders that are made to the same people.`,
		Example: `  callreel symbols build -o redis.symmap /usr/bin/redis-server
  callreel symbols build -o ./store /usr/lib/debug/lib/modules`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := untilSignal(c.Context()) // so that half a file is removed
			defer stop()
			if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
				return f.folder(ctx, c, args[0])
			}
			return f.file(ctx, c, args[0])
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "write the map, or the store, to `OUT`")
	fl.BoolVarP(&f.force, "force", "f", false, "replace the map if it exists")
	addMode(fl, &f.mode)
	addDebugDirs(c.Flags(), &f.debugDirs)
	addArch(c, &f.arch)
	f.memory.add(fl)
	fl.BoolVar(&f.json, "json", false, "write what was made, as JSON")
	return c
}

// file compiles one map.
func (f *buildFlags) file(ctx context.Context, c *cobra.Command, path string) error {
	im, err := openImage(path, f.arch, f.memory)
	if err != nil {
		return err
	}
	defer im.Close()
	out := f.output
	if out == "" {
		out = base(path) + ".symmap"
	}
	if sameFile(path, out) {
		return usageError("callreel symbols build: %s is the image itself; give -o another file", out)
	}
	status := newStatus(c.ErrOrStderr())
	bar := newProgress(status)
	var stats *symbols.BuildStats
	write := func(w io.Writer) (err error) {
		stats, err = symbols.Build(ctx, im, w, buildOptions(nil, f.debugDirs, func(done, total int64) { bar.bytes(base(path), done, total) }))
		bar.clear()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if out == "-" {
		return write(c.OutOrStdout())
	}
	if err := writeOutput(out, f.force, f.mode, write); err != nil {
		return err
	}
	status.problems(stats)
	if f.json {
		return writeJSON(c.OutOrStdout(), builtMap{
			out, stats.ID, stats.Functions, stats.Inlines, stats.Rows, stats.Bytes, stats.DWARF, len(stats.Problems) + stats.Lost, texts(stats.Missing),
		})
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", printable(out), statsText(stats))
	return err
}

// builtMap is what symbols build --json says of a file; the keys are promised.
type builtMap struct {
	Map       string `json:"map"`
	ID        string `json:"id"`
	Functions int    `json:"functions"`
	Inlines   int    `json:"inlined_calls"`
	Rows      int    `json:"rows"`
	Bytes     int64  `json:"bytes"`
	DWARF     int64  `json:"dwarf_bytes"` // inflated
	Problems  int    `json:"problems"`
	// Missing is what the image names, or what is there and was refused.
	Missing []string `json:"missing,omitempty"`
}

// statsText says what a map holds.
func statsText(s *symbols.BuildStats) string {
	text := fmt.Sprintf("%s, %s, %s", things(uint64(s.Functions), "function"), things(uint64(s.Inlines), "inlined call"), bytesText(s.Bytes))
	if s.DWARF > 0 {
		text += " from " + bytesText(s.DWARF) + " of DWARF"
	} else {
		text += ", no DWARF"
	}
	return text
}

// openImage opens an image; a fat file without --arch is wrong usage.
func openImage(path, arch string, memory memoryLimit) (*object.Image, error) {
	im, err := memory.opener().OpenArch(path, arch)
	if errors.Is(err, object.ErrSeveralArchs) || errors.Is(err, object.ErrNoArch) {
		return nil, usageError("%w; give --arch", err)
	}
	return im, err
}

func texts(errs []error) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}
