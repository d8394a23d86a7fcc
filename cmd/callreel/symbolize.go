package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/symbols/symbolize"
)

// symbolizeFlags are the flags of symbolize.
type symbolizeFlags struct {
	json      bool
	images    []string
	store     string
	debugDirs []string
	arch      string
	memory    memoryLimit
}

func newSymbolize() *cobra.Command {
	f := &symbolizeFlags{}
	c := &cobra.Command{
		Use:   "symbolize [--json] [--image PATH[@LOAD]] [FILE]",
		Short: "Name the addresses of captured stacks, or of any text",
		Long: `Symbolize reads stdin, or FILE, and names the addresses in it. Input is one of these:

  JSON     {"images": [{"id", "load", "size", "path"}], "threads": [{"tid", "frames": [{"address"}]}]}
           A frame's "kind" may be "signal" or "interrupted"; addresses are numbers or "0x…".
  text     Lines of stacks as gdb, lldb, glibc, Apple, Android, Linux and sanitizers write them, lists of addresses, and
           images as /proc/PID/maps has them, as Apple lists them, or as "image LOAD SIZE ID PATH".

Text passes through as it is, with a name behind each address that falls into an image. With --json the answer is the
capture with "image", "offset" and "inline" (innermost first) in each frame, and "reason" where there is no name.

All addresses of a stack but the first are return addresses, so the call before each is named. The frame that a signal
interrupted is taken as it is. Symbols come from the store, from the file and its debug files, and from
DEBUGINFOD_URLS if that is set.`,
		Example: `  callreel symbolize --json < capture.json
  ./prog 2>&1 | callreel symbolize --image ./prog@0x555555554000
  callreel symbolize < crash.log`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("callreel symbolize: give one FILE at most; see callreel symbolize --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.json, "json", false, "write JSON")
	fl.StringArrayVar(&f.images, "image", nil, "an image of the process, `PATH[@LOAD]`; without LOAD it is at its link address (repeatable)")
	fl.StringVar(&f.store, "store", "", "look for maps in the store `DIR` (default your user's)")
	addDebugDirs(c.Flags(), &f.debugDirs)
	addArch(c, &f.arch)
	f.memory.add(fl)
	return c
}

func (f *symbolizeFlags) run(c *cobra.Command, args []string) error {
	images, err := f.given()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(c.Context())
	defer stop()
	var in io.Reader = c.InOrStdin()
	if len(args) == 1 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return fmt.Errorf("callreel: %w", err)
		}
		defer file.Close()
		in = file
	}
	source, err := f.source("callreel symbolize", newStatus(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f.answer(ctx, in, c.OutOrStdout(), source, images) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		// A read of a terminal ends with the next line only. A map that is being made is given
		// the time to remove what it has begun; what is open ends with the program.
		select {
		case <-done:
		case <-time.After(time.Second):
		}
		return context.Cause(ctx)
	}
	return errors.Join(err, source.Close())
}

// answer chooses by what the input is.
func (f *symbolizeFlags) answer(ctx context.Context, in io.Reader, w io.Writer, source symbolize.Source, images []*symbolize.Image) error {
	b := bufio.NewReaderSize(in, 64<<10)
	switch isJSON := looksLikeCapture(b); {
	case isJSON && len(images) > 0:
		return usageError("callreel symbolize: --image is for text; JSON lists its images")
	case isJSON && f.json:
		return symbolize.JSON(ctx, b, w, source)
	case isJSON:
		return symbolize.Text(ctx, b, w, source)
	case f.json:
		return symbolize.TextJSON(ctx, b, w, source, images...)
	}
	return symbolize.Filter(ctx, b, w, source, images...)
}

// looksLikeCapture says whether the input is a JSON object. It reads no more than has come,
// so that a filter answers the first line at once; a log of JSON lines is text.
func looksLikeCapture(b *bufio.Reader) bool {
	for n := 1; ; n++ {
		start, err := b.Peek(n)
		if err != nil {
			return false
		}
		switch c := start[n-1]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{':
		default:
			return false
		}
		start, _ = b.Peek(max(n, b.Buffered()))
		line, _, whole := bytes.Cut(bytes.TrimLeft(start, " \t\r\n"), []byte("\n"))
		// A log's line is an object by itself, without the keys of a capture.
		isLog := whole && bytes.HasSuffix(bytes.TrimSpace(line), []byte("}")) &&
			!bytes.Contains(line, []byte(`"images"`)) && !bytes.Contains(line, []byte(`"threads"`))
		return !isLog
	}
}

// given reads --image.
func (f *symbolizeFlags) given() ([]*symbolize.Image, error) {
	var list []*symbolize.Image
	for _, text := range f.images {
		im, err := f.image(text)
		if err != nil {
			return nil, err
		}
		list = append(list, im)
	}
	return list, nil
}

// image reads PATH[@LOAD].
func (f *symbolizeFlags) image(text string) (*symbolize.Image, error) {
	path, load := splitImage(text)
	im, err := openImage(path, f.arch, f.memory)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	given := symbolize.Describe(im)
	if load != nil {
		given.Load = *load
	}
	return given, nil
}

// splitImage parts PATH and LOAD, which is nil when there is none. A path may have an @, too.
func splitImage(text string) (path string, load *uint64) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text, nil
	}
	v, ok := parseAddress([]byte(text[at+1:]))
	if !ok {
		return text, nil
	}
	return text[:at], &v
}
