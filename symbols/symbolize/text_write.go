package symbolize

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Text reads captures as JSON from r, as JSON does, and writes their stacks for people.
func Text(ctx context.Context, r io.Reader, w io.Writer, source Source) error {
	b := bufio.NewWriterSize(w, maxLine)
	err := readJSON(r, &textWriter{ctx: ctx, w: b, s: New(source)}, true)
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return err
}

// TextJSON reads text from r, as Filter does, and writes its images and stacks to w as JSON
// does. Addresses outside of stacks are left out. Images may stand behind the stacks; where
// two overlap, addresses get a reason.
func TextJSON(ctx context.Context, r io.Reader, w io.Writer, source Source, images ...*Image) error {
	b := bufio.NewWriterSize(w, maxLine)
	err := readText(ctx, r, images, &jsonWriter{ctx: ctx, w: b, s: New(source)})
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return err
}

// textWriter writes stacks for people.
type textWriter struct {
	ctx     context.Context
	w       *bufio.Writer
	s       *Symbolizer
	walk    Walk
	threads int
	frames  int
}

func (t *textWriter) begin() error        { return t.s.SetImages(nil) }
func (t *textWriter) member(member) error { return nil }
func (t *textWriter) end() error          { return t.w.Flush() }

func (t *textWriter) images(list []*Image, _ [][]member) error { return t.s.SetImages(list) }

func (t *textWriter) thread(tid json.RawMessage, name string) error {
	if t.threads > 0 {
		t.w.WriteByte('\n')
	}
	t.threads++
	t.frames, t.walk = 0, Walk{}
	head := "thread"
	if tid != nil {
		head += " " + printable(strings.Trim(string(tid), `"`))
	}
	if name != "" {
		head += " " + printable(name)
	}
	_, err := fmt.Fprintln(t.w, head)
	return err
}

func (t *textWriter) frame(f *Frame, _ []member) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	var n Named
	t.s.Next(t.ctx, &t.walk, f, &n)
	place := ""
	if n.Image != nil {
		place = fmt.Sprintf("  (%s+%#x)", printable(n.Image.Name()), n.Offset)
	}
	fmt.Fprintf(t.w, "%4d  0x%016x  ", t.frames, n.Address)
	t.frames++
	if len(n.Calls) == 0 {
		_, err := fmt.Fprintf(t.w, "?? %s%s\n", printable(n.Reason), place)
		return err
	}
	for k := range n.Calls {
		if k > 0 {
			fmt.Fprintf(t.w, " (inlined)\n%4s  %18s  ", "", "")
		}
		t.w.WriteString(callText(&n.Calls[k]))
	}
	_, err := fmt.Fprintln(t.w, place)
	return err
}

func (t *textWriter) endThread([]member) error { return nil }
