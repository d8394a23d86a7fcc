package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/symbols"
)

func newSymbolsLookup() *cobra.Command {
	var arch string
	var debugDirs []string
	var asJSON bool
	var memory memoryLimit
	c := &cobra.Command{
		Use:   "lookup [--arch ARCH] MAP | FILE [ADDR…]",
		Short: "Show what is at addresses of an image",
		Long: `Lookup answers link addresses with the function, its file and line, and all that was inlined there. Addresses are given
as arguments or one a line on stdin, in hexadecimal with or without 0x. For relocatable files they are offsets in .text.
An address is taken as it is. For a return address, ask for the one before it.

For an ELF or Mach-O FILE it compiles the map in memory. A MAP is opened at once.`,
		Example: `  callreel symbols lookup redis.symmap 0x4a31f0 4a3200
  cut -f2 addresses.tsv | callreel symbols lookup redis.symmap --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("callreel symbols lookup: give a MAP or a FILE; see callreel symbols lookup --help")
			}
			for _, text := range args[1:] {
				if _, ok := parseAddress([]byte(text)); !ok {
					return usageError("callreel symbols lookup: %q is not a hexadecimal address", text)
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			m, err := openMap(c.Context(), newStatus(c.ErrOrStderr()), args[0], arch, memory, debugDirs)
			if err != nil {
				return err
			}
			defer m.Close()
			var in io.Reader = c.InOrStdin()
			if len(args) > 1 {
				in = strings.NewReader(strings.Join(args[1:], "\n") + "\n")
			}
			return newLookup(m, c.OutOrStdout(), asJSON).lines(in)
		},
	}
	addArch(c, &arch)
	memory.add(c.Flags())
	addDebugDirs(c.Flags(), &debugDirs)
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	return c
}

// openMap opens a symbol map, or compiles that of an image in memory.
func openMap(ctx context.Context, status *status, path, arch string, memory memoryLimit, debugDirs []string) (*symbols.Map, error) {
	if is, err := isMap(path); err != nil {
		return nil, fmt.Errorf("callreel: %w", err)
	} else if is {
		return symbols.Open(path)
	}
	im, err := openImage(path, arch, memory)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	bar := newProgress(status)
	m, stats, err := symbols.BuildMap(ctx, im, buildOptions(nil, debugDirs, func(done, total int64) { bar.bytes(base(path), done, total) }))
	bar.clear()
	if err != nil {
		return nil, err
	}
	status.problems(stats)
	return m, nil
}

// isMap says whether a file is a symbol map.
func isMap(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false, err // opening a FIFO would wait; what it is comes out later
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, 64)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return symbols.IsMap(start[:n]), nil
}

// parseAddress reads a hexadecimal number with or without 0x.
func parseAddress(text []byte) (uint64, bool) {
	text = bytes.TrimSpace(text)
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		text = text[2:]
	}
	if len(text) == 0 || len(text) > 16 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text), 16, 64)
	return v, err == nil
}

// lookup answers addresses.
type lookup struct {
	m      *symbols.Map
	w      *bufio.Writer
	json   bool
	frames []symbols.Frame
	line   []byte
	names  map[uint32]string // what is written for a linkage name, by its number in the map
	files  map[uint32]string // and for a file
	kept   int               // bytes of both
	wrong  int               // lines that are no address
}

func newLookup(m *symbols.Map, w io.Writer, asJSON bool) *lookup {
	return &lookup{m: m, w: bufio.NewWriterSize(w, 64<<10), json: asJSON, names: map[uint32]string{}, files: map[uint32]string{}}
}

// maxKept bounds the names that are kept, in bytes. They are what takes the time: looking an
// address up costs a tenth of demangling its function. A million C++ names have 200 MB.
const maxKept = 128 << 20

// lines answers an address a line. What has come is answered before more is waited for, so
// that a program can talk to it.
func (l *lookup) lines(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	inside := false // a line that is too long to be an address
	for {
		text, err := in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if !full {
			if inside {
				text = []byte("…")
			}
			if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 {
				if err := l.answer(trimmed); err != nil {
					return err
				}
			}
		}
		inside = full
		if err != nil && !full {
			if ferr := l.w.Flush(); ferr != nil || !errors.Is(err, io.EOF) {
				return errors.Join(ferr, err)
			}
			break
		}
		if in.Buffered() == 0 {
			if err := l.w.Flush(); err != nil {
				return err
			}
		}
	}
	if l.wrong > 0 {
		return fmt.Errorf("symbols lookup: %s on stdin that are no hexadecimal address", things(uint64(l.wrong), "line"))
	}
	return nil
}

// answer writes what is at one address.
func (l *lookup) answer(text []byte) error {
	addr, ok := parseAddress(text)
	reason := "not an address"
	l.frames = l.frames[:0]
	if ok {
		var why symbols.Reason
		l.frames, why = l.m.Lookup(addr, l.frames)
		reason = l.m.Explain(why)
	} else {
		l.wrong++
	}
	l.line = l.line[:0]
	switch {
	case l.json && ok:
		l.jsonLine(strconv.AppendUint([]byte("0x"), addr, 16), reason)
	case l.json:
		l.jsonLine(text[:min(len(text), 64)], reason)
	case ok:
		l.textLine(addr, reason)
	default:
		l.line = fmt.Appendf(l.line, "%s: ?? %s\n", printable(string(text[:min(len(text), 64)])), reason)
	}
	_, err := l.w.Write(l.line)
	return err
}

// textLine is the human form, a line for each function.
func (l *lookup) textLine(addr uint64, reason string) {
	l.line = append(strconv.AppendUint(append(l.line, "0x"...), addr, 16), ": "...)
	if len(l.frames) == 0 {
		l.line = append(append(append(l.line, "?? "...), reason...), '\n')
		return
	}
	for k := range l.frames {
		f := &l.frames[k]
		if k > 0 {
			l.line = append(l.line, " (inlined by) "...)
		}
		l.line = append(l.line, l.textOf(l.names, f.NameID, func() string { return printable(f.Function()) })...)
		l.line = append(l.line, " at "...)
		l.place(f)
		l.line = append(l.line, '\n')
	}
}

// place appends the file and the line, with ?? for what is not known.
func (l *lookup) place(f *symbols.Frame) {
	if f.Base == "" && f.Dir == "" {
		l.line = append(l.line, "??:?"...)
		return
	}
	l.line = append(l.line, l.textOf(l.files, f.FileID, func() string { return printable(f.File()) + ":" })...)
	if f.Line == 0 {
		l.line = append(l.line, '?')
		return
	}
	l.line = strconv.AppendUint(l.line, uint64(f.Line), 10)
}

// textOf returns what make makes of a name or a file, and remembers it.
func (l *lookup) textOf(known map[uint32]string, number uint32, make func() string) string {
	if text, ok := known[number]; ok {
		return text
	}
	const entry = 32 // bytes, besides the text
	text := make()
	if l.kept += entry + len(text); l.kept > maxKept {
		clear(l.names)
		clear(l.files)
		l.kept = entry + len(text)
	}
	known[number] = text
	return text
}

// jsonLine is one object. It is put together by hand: encoding/json would take most of the
// time of an answer.
func (l *lookup) jsonLine(address []byte, reason string) {
	l.line = append(l.line, `{"address":`...)
	l.line = append(l.line, quoted(string(address))...)
	l.line = append(l.line, `,"frames":[`...)
	for k := range l.frames {
		f := &l.frames[k]
		if k > 0 {
			l.line = append(l.line, ',')
		}
		l.line = append(l.line, l.textOf(l.names, f.NameID, func() string {
			return `{"function":` + quoted(f.Function()) + `,"linkage_name":` + quoted(f.Linkage) + `,"file":`
		})...)
		l.line = append(l.line, l.textOf(l.files, f.FileID, func() string { return quoted(f.File()) })...)
		l.line = append(l.line, `,"line":`...)
		l.line = strconv.AppendUint(l.line, uint64(f.Line), 10)
		l.line = append(l.line, `,"inlined":`...)
		l.line = append(strconv.AppendBool(l.line, f.Inlined), '}')
	}
	l.line = append(l.line, ']')
	if len(l.frames) == 0 {
		l.line = append(append(l.line, `,"reason":`...), quoted(reason)...)
	}
	l.line = append(l.line, '}', '\n')
}

// quoted is a string as JSON.
func quoted(s string) string { return string(appendQuoted(nil, s)) }

// appendQuoted appends a string as JSON.
func appendQuoted(b []byte, s string) []byte {
	for k := range len(s) {
		if c := s[k]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			text, err := safejson.Marshal(s)
			if err != nil { // of a string there is none
				text = []byte(`""`)
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
