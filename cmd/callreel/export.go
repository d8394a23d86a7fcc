package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/export"
	"github.com/callreel/callreel/reel"
)

// exportFormats write a reel in another format, by the name that --format has for it.
var exportFormats = map[string]func(context.Context, *reel.File, io.Writer) error{
	"chrome": func(ctx context.Context, f *reel.File, w io.Writer) error {
		return export.Chrome(ctx, f, w, export.Options{Name: demangle.Name})
	},
}

func formatNames() string {
	return strings.Join(slices.Sorted(maps.Keys(exportFormats)), ", ")
}

func newExport() *cobra.Command {
	var format, output string
	var force bool
	c := &cobra.Command{
		Use:   "export FILE --format FORMAT -o OUT",
		Short: "Write a reel in a format that other tools read",
		Long: `Export writes all calls of a reel to OUT. Formats:

  chrome   Chrome trace JSON, for https://ui.perfetto.dev and chrome://tracing`,
		Example: `  callreel export slow.reel --format chrome -o slow.json
  callreel export slow.reel --format chrome -o - | gzip > slow.json.gz`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			write, ok := exportFormats[format]
			switch {
			case format == "":
				return usageError("callreel export: give --format FORMAT; there is: %s", formatNames())
			case !ok:
				return usageError("callreel export: --format %s: there is no such format, only: %s", format, formatNames())
			case output == "":
				return usageError("callreel export: give -o OUT, a file, or - for stdout")
			}
			return exportReel(c, args[0], output, force, write)
		},
	}
	fl := c.Flags()
	fl.StringVar(&format, "format", "", "the `FORMAT`: "+formatNames())
	fl.StringVarP(&output, "output", "o", "", "the file to write, `OUT`; - is stdout")
	fl.BoolVarP(&force, "force", "f", false, "replace a file that is there")
	return c
}

func exportReel(c *cobra.Command, path, output string, force bool, write func(context.Context, *reel.File, io.Writer) error) error {
	f, err := reel.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if sameFile(path, output) {
		return usageError("callreel export: %s is the reel itself; give -o another file", output)
	}
	ctx, stop := untilSignal(c.Context()) // so that half a file is removed
	defer stop()
	status := newStatus(c.ErrOrStderr())
	all := func(w io.Writer) error {
		counted := &counter{Writer: w, after: func(n int64) { status.show("%s written   Ctrl-C ends", bytesText(n)) }}
		err := write(ctx, f, counted)
		status.clear()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if output == "-" {
		err = all(c.OutOrStdout())
	} else {
		err = writeOutput(output, force, all)
	}
	if err != nil {
		return err
	}
	for _, d := range f.Damage() {
		status.notice("%s is damaged: %s", path, d)
	}
	if !f.Closed() {
		status.notice("%s was not ended by its recorder: that is still at work, or was killed", path)
	}
	return nil
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// counter tells how much was written.
type counter struct {
	io.Writer
	n     int64
	after func(n int64)
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	c.after(c.n)
	if err != nil {
		return n, fmt.Errorf("after %s: %w", bytesText(c.n), err)
	}
	return n, nil
}
