package symbolize

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
)

// JSONBytes is JSON for captures that are in memory, and several times as fast for those of the usual form: images first, and
// frames that have an address and nothing else. If there is anything wrong with them, nothing is written.
func JSONBytes(ctx context.Context, data []byte, w io.Writer, source Source) error {
	return jsonBytes(ctx, data, w, source, false)
}

// JSONLine is JSONBytes for one capture, which is answered on one line.
func JSONLine(ctx context.Context, line []byte, w io.Writer, source Source) error {
	return jsonBytes(ctx, line, w, source, true)
}

func jsonBytes(ctx context.Context, data []byte, w io.Writer, source Source, lines bool) error {
	c, quick := readQuickly(data)
	if !quick {
		if err := CheckJSON(bytes.NewReader(data)); err != nil {
			return err
		}
	}
	to := newJSONWriter(ctx, w, source, lines)
	var err error
	if quick {
		err = c.replay(to)
	} else {
		err = readJSON(bytes.NewReader(data), to, false)
	}
	if ferr := to.close(); err == nil {
		err = ferr
	}
	return err
}

// CheckJSON says what is wrong with captures that JSON is to read: for answers that must not begin before that is known.
func CheckJSON(r io.Reader) error { return readJSON(r, nobody{}, false) }

// quickCapture is a capture of the usual form.
type quickCapture struct {
	images  []*Image
	extra   [][]member
	threads []quickThread
}

type quickThread struct {
	tid       json.RawMessage
	name      string
	addresses []uint64
}

func (c *quickCapture) replay(to receiver) error {
	if err := to.begin(); err != nil {
		return err
	}
	if err := to.images(c.images, c.extra); err != nil {
		return err
	}
	for k := range c.threads {
		t := &c.threads[k]
		if err := to.thread(t.tid, t.name); err != nil {
			return err
		}
		for _, a := range t.addresses {
			if err := to.frame(&Frame{Address: a}, nil); err != nil {
				return err
			}
		}
		if err := to.endThread(nil); err != nil {
			return err
		}
	}
	return to.end()
}

// quickReader reads what it knows, and gives up on all else: then the bytes are read again by a jsonReader. So what it takes must
// mean the same to that.
type quickReader struct {
	rest []byte
	bad  bool
}

// readQuickly reads one capture of the usual form that is all of the data.
func readQuickly(data []byte) (*quickCapture, bool) {
	q := &quickReader{rest: data}
	c := &quickCapture{}
	q.want('{')
	if string(q.text()) != "images" {
		return nil, false
	}
	q.want(':')
	raw := q.list()
	j := newJSONReader(bytes.NewReader(raw), nil)
	if q.bad || j.array("images", func(int) error { return j.image(&c.images, &c.extra) }) != nil {
		return nil, false
	}
	q.want(',')
	if string(q.text()) != "threads" {
		return nil, false
	}
	q.want(':')
	q.each(func() { c.threads = append(c.threads, q.thread()) })
	q.want('}')
	q.space()
	return c, !q.bad && len(q.rest) == 0
}

func (q *quickReader) thread() (t quickThread) {
	q.want('{')
	for !q.bad {
		switch string(q.text()) {
		case "tid":
			q.want(':')
			if q.space(); len(q.rest) > 0 && q.rest[0] >= '1' && q.rest[0] <= '9' {
				n := 1
				for n < len(q.rest) && n < 19 && q.rest[n] >= '0' && q.rest[n] <= '9' {
					n++
				}
				t.tid, q.rest = json.RawMessage(q.rest[:n:n]), q.rest[n:]
			} else {
				q.bad = true
			}
		case "name":
			q.want(':')
			t.name = string(q.text())
		case "frames":
			q.want(':')
			q.each(func() { t.addresses = append(t.addresses, q.frame()) })
			q.want('}')
			return t
		default:
			q.bad = true
		}
		q.want(',')
	}
	return t
}

// frame takes a frame that is an address and nothing else.
func (q *quickReader) frame() uint64 {
	q.want('{')
	if string(q.text()) != "address" {
		q.bad = true
	}
	q.want(':')
	a := q.address()
	q.want('}')
	return a
}

// quickFrame reads a frame that is an address and nothing else.
func quickFrame(raw []byte) (address uint64, ok bool) {
	q := &quickReader{rest: raw}
	address = q.frame()
	q.space()
	return address, !q.bad && len(q.rest) == 0
}

// each calls item before every item of a list.
func (q *quickReader) each(item func()) {
	q.want('[')
	if q.next(']') {
		return
	}
	for !q.bad {
		item()
		if q.next(']') {
			return
		}
		q.want(',')
	}
}

func (q *quickReader) space() {
	for len(q.rest) > 0 && (q.rest[0] == ' ' || q.rest[0] == '\n' || q.rest[0] == '\t' || q.rest[0] == '\r') {
		q.rest = q.rest[1:]
	}
}

// next takes a character if it comes next.
func (q *quickReader) next(c byte) bool {
	q.space()
	if len(q.rest) == 0 || q.rest[0] != c {
		return false
	}
	q.rest = q.rest[1:]
	return true
}

func (q *quickReader) want(c byte) {
	if !q.next(c) {
		q.bad = true
	}
}

// text takes a string of plain characters.
func (q *quickReader) text() []byte {
	q.want('"')
	for k, c := range q.rest {
		if c == '"' && !q.bad {
			text := q.rest[:k]
			q.rest = q.rest[k+1:]
			return text
		}
		if c < ' ' || c > '~' || c == '\\' {
			break
		}
	}
	q.bad = true
	return nil
}

// address takes a string of "0x" and hexadecimal digits, or a decimal number.
func (q *quickReader) address() uint64 {
	q.space()
	if len(q.rest) > 0 && q.rest[0] == '"' {
		text := q.text()
		if len(text) < 3 || len(text) > 18 || text[0] != '0' || text[1] != 'x' {
			q.bad = true
			return 0
		}
		var v uint64
		for _, c := range text[2:] {
			switch {
			case c >= '0' && c <= '9':
				c -= '0'
			case c >= 'a' && c <= 'f':
				c -= 'a' - 10
			default:
				q.bad = true
			}
			v = v<<4 | uint64(c&15)
		}
		return v
	}
	n := 0
	for n < len(q.rest) && q.rest[n] >= '0' && q.rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(q.rest[:n]), 10, 64)
	if err != nil || n > 1 && q.rest[0] == '0' {
		q.bad = true
	}
	q.rest = q.rest[n:]
	return v
}

// list takes a list as it is, of which only the end is looked for.
func (q *quickReader) list() []byte {
	q.space()
	depth, inside := 0, false
	for k := 0; k < len(q.rest); k++ {
		switch c := q.rest[k]; {
		case inside && c == '\\':
			k++
		case c == '"':
			inside = !inside
		case inside:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				raw := q.rest[:k+1]
				q.rest = q.rest[k+1:]
				q.bad = q.bad || raw[0] != '['
				return raw
			}
		}
		if depth == 0 {
			break
		}
	}
	q.bad = true
	return nil
}
