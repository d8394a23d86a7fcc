package symbolize

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/callreel/callreel/internal/safejson"
)

// JSON reads captures as JSON from r, names their frames, and writes the same captures to w
// with what was found. Keys that mean nothing here are kept.
//
// Of an image it knows id, path, arch, load, size and file_offset, of a thread tid and name,
// of a frame address, kind ("signal" or "interrupted") and interrupted (true); see Kind. An
// address is a whole number or "0x…", and always written as "0x…". A frame may be its address
// alone. Frames get image, offset (from the load address), inline (innermost first) and, where
// that is empty, reason.
func JSON(ctx context.Context, r io.Reader, w io.Writer, source Source) error {
	to := newJSONWriter(ctx, w, source, false)
	err := readJSON(r, to, false)
	if ferr := to.close(); err == nil {
		err = ferr
	}
	return err
}

// jsonWriter writes captures as JSON as they come.
type jsonWriter struct {
	ctx  context.Context
	w    *bufio.Writer
	s    *Symbolizer
	walk Walk

	lines bool // one capture is one line

	image     *Image      // whose name is in imageText
	imageText []byte      // `"image":"…",`; nothing when it has no name
	texts     []callTexts // used again

	members int // written of the capture
	threads int
	frames  int // of the thread
	counter Counter
}

// nobody receives a capture that is only checked.
type nobody struct{}

func (nobody) begin() error                         { return nil }
func (nobody) member(member) error                  { return nil }
func (nobody) images([]*Image, [][]member) error    { return nil }
func (nobody) thread(json.RawMessage, string) error { return nil }
func (nobody) frame(*Frame, []member) error         { return nil }
func (nobody) endThread([]member) error             { return nil }
func (nobody) end() error                           { return nil }

func newJSONWriter(ctx context.Context, w io.Writer, source Source, lines bool) *jsonWriter {
	s := New(source)
	s.raw = true
	b := writers.Get().(*bufio.Writer)
	b.Reset(w)
	counter, _ := source.(Counter)
	return &jsonWriter{ctx: ctx, w: b, s: s, lines: lines, counter: counter}
}

// writers are buffers that are used again.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// close flushes what was written, and gives the buffer back.
func (j *jsonWriter) close() error {
	err := j.w.Flush()
	j.w.Reset(nil)
	writers.Put(j.w)
	j.w = nil
	return err
}

// newline parts what people read.
func (j *jsonWriter) newline() {
	if !j.lines {
		j.w.WriteByte('\n')
	}
}

func (j *jsonWriter) begin() error {
	j.members, j.threads = 0, -1
	// Images of the capture before mean nothing to this one.
	return j.s.SetImages(nil)
}

// key starts a member of the capture.
func (j *jsonWriter) key(name string) {
	j.endThreads()
	separator := "{"
	if j.members > 0 {
		separator = ","
	}
	j.members++
	fmt.Fprintf(j.w, "%s%q:", separator, name)
}

func (j *jsonWriter) member(m member) error {
	j.endThreads()
	if j.members == 0 {
		j.w.WriteByte('{')
	}
	j.members++
	return j.write(j.members == 1, m)
}

// write writes members of an object with a comma before each but its first.
func (j *jsonWriter) write(first bool, list ...member) error {
	for k, m := range list {
		if !first || k > 0 {
			j.w.WriteByte(',')
		}
		if err := j.value(m.key); err != nil {
			return err
		}
		j.w.WriteByte(':')
		if err := j.value(m.value); err != nil {
			return err
		}
	}
	return nil
}

// value writes any value, with all control characters escaped.
func (j *jsonWriter) value(v any) error {
	text, err := safejson.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.w.Write(text)
	return err
}

// jsonImage is an image as it is written.
type jsonImage struct {
	ID     string `json:"id"`
	Load   string `json:"load"`
	Size   uint64 `json:"size"`
	Path   string `json:"path"`
	Arch   string `json:"arch,omitempty"`
	Offset string `json:"file_offset,omitempty"`
}

func (j *jsonWriter) images(list []*Image, extra [][]member) error {
	if err := j.s.SetImages(list); err != nil {
		return err
	}
	j.key("images")
	j.w.WriteByte('[')
	for k, im := range list {
		if k > 0 {
			j.w.WriteByte(',')
		}
		j.newline()
		out := jsonImage{ID: im.ID, Load: hex(im.Load), Size: im.Size, Path: im.Path, Arch: im.Arch}
		if im.Offset != 0 {
			out.Offset = hex(im.Offset)
		}
		var rest []member
		if k < len(extra) {
			rest = extra[k]
		}
		if err := j.extended(out, rest); err != nil {
			return err
		}
	}
	j.w.WriteByte(']')
	return nil
}

// extended writes a struct and further members as one object.
func (j *jsonWriter) extended(v any, rest []member) error {
	text, err := safejson.Marshal(v)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		_, err = j.w.Write(text)
		return err
	}
	j.w.Write(text[:len(text)-1])
	if err := j.write(false, rest...); err != nil {
		return err
	}
	return j.w.WriteByte('}')
}

func (j *jsonWriter) thread(tid json.RawMessage, name string) error {
	if j.threads < 0 {
		j.key("threads")
		j.w.WriteByte('[')
		j.threads = 0
	}
	if j.threads > 0 {
		j.w.WriteByte(',')
	}
	j.threads++
	j.frames = 0
	j.walk = Walk{}
	j.newline()
	j.w.WriteByte('{')
	if tid != nil {
		if err := j.write(true, member{"tid", tid}); err != nil {
			return err
		}
		j.w.WriteByte(',')
	}
	if name != "" {
		j.w.WriteString(`"name":`)
		if err := j.value(name); err != nil {
			return err
		}
		j.w.WriteByte(',')
	}
	_, err := j.w.WriteString(`"frames":[`)
	return err
}

// jsonFrame is a frame as it is written.
type jsonFrame struct {
	Address string     `json:"address"`
	Image   string     `json:"image,omitempty"`
	Offset  string     `json:"offset,omitempty"`
	Inline  []jsonCall `json:"inline"`
	Reason  string     `json:"reason,omitempty"`
}

// jsonCall is one function as it is written; `symbols lookup` has the same keys.
type jsonCall struct {
	Function string `json:"function"`
	Linkage  string `json:"linkage_name"`
	File     string `json:"file"`
	Line     uint32 `json:"line"`
	Inlined  bool   `json:"inlined"`
}

func (j *jsonWriter) frame(f *Frame, extra []member) error {
	if err := j.ctx.Err(); err != nil {
		return context.Cause(j.ctx)
	}
	var n Named
	j.s.Next(j.ctx, &j.walk, f, &n)
	if j.frames > 0 {
		j.w.WriteByte(',')
	}
	j.frames++
	j.newline()
	if n.texts == nil {
		return j.extended(frameJSON(&n), extra)
	}
	if err := j.quick(&n); err != nil {
		return err
	}
	if err := j.write(false, extra...); err != nil {
		return err
	}
	return j.w.WriteByte('}')
}

// quick writes a frame as jsonFrame has it, without its brace at the end, by texts that are kept.
func (j *jsonWriter) quick(n *Named) error {
	if j.image != n.Image {
		name := n.Image.Path
		if name == "" {
			name = n.Image.ID
		}
		j.image, j.imageText = n.Image, j.imageText[:0]
		if name != "" { // an image may be known by its load address alone
			j.imageText = append(safejson.AppendString(append(j.imageText, `"image":`...), name), ',')
		}
	}
	b := append(j.w.AvailableBuffer(), `{"address":"0x`...)
	b = append(strconv.AppendUint(b, n.Address, 16), `",`...)
	b = append(append(b, j.imageText...), `"offset":"0x`...)
	b = append(strconv.AppendUint(b, n.Offset, 16), `","inline":[`...)
	b = append(n.texts.appendCalls(b, n.found, &j.texts), ']')
	if n.Reason != "" {
		b = safejson.AppendString(append(b, `,"reason":`...), n.Reason)
	}
	_, err := j.w.Write(b)
	return err
}

func frameJSON(n *Named) jsonFrame {
	out := jsonFrame{Address: hex(n.Address), Inline: make([]jsonCall, len(n.Calls)), Reason: n.Reason}
	if n.Image != nil {
		if out.Image = n.Image.Path; out.Image == "" {
			out.Image = n.Image.ID
		}
		out.Offset = hex(n.Offset)
	}
	for k, c := range n.Calls {
		out.Inline[k] = jsonCall(c)
	}
	return out
}

func (j *jsonWriter) endThread(extra []member) error {
	if j.counter != nil {
		j.counter.Count(j.frames)
	}
	j.w.WriteByte(']')
	if err := j.write(false, extra...); err != nil {
		return err
	}
	return j.w.WriteByte('}')
}

// endThreads closes the list of threads, if it is open.
func (j *jsonWriter) endThreads() {
	if j.threads >= 0 {
		j.w.WriteByte(']')
		j.threads = -1
	}
}

func (j *jsonWriter) end() error {
	j.endThreads()
	if j.members == 0 {
		j.w.WriteByte('{')
	}
	j.newline()
	_, err := j.w.WriteString("}\n")
	if err != nil {
		return err
	}
	return j.w.Flush()
}
