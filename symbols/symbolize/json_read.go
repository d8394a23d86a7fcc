package symbolize

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// maxValue bounds what one image, one frame or one key that is not known takes, in bytes
	// of JSON. Paths end at 4 KiB; the rest is for what captures put beside.
	maxValue = 4 << 20

	// maxDeferred bounds the frames that wait for images that come behind them.
	maxDeferred = 1 << 20
)

// A member is a key of the input that means nothing here and goes through.
type member struct {
	key   string
	value json.RawMessage
}

// A receiver gets a capture's parts in the order of the input.
type receiver interface {
	begin() error                                 // a capture
	member(m member) error                        // of the capture
	images(list []*Image, extra [][]member) error // extra are the members that go through, by image
	threadReceiver
	end() error
}

// A threadReceiver gets the parts of one thread after the other.
type threadReceiver interface {
	thread(tid json.RawMessage, name string) error
	frame(f *Frame, extra []member) error
	endThread(extra []member) error
}

// jsonReader reads captures as JSON, one or several one after the other:
//
//	{"images": [{"id", "load", "size", "path"}], "threads": [{"tid", "frames": [{"address"}]}]}
//
// Values are read one by one, so memory does not grow with the capture; only threads that
// come before the images wait for them.
type jsonReader struct {
	dec      *json.Decoder
	in       *meter
	to       receiver
	deferred int

	// whole hands threads on when all of them has been read: a thread's ID may stand behind
	// its frames.
	whole bool
}

func newJSONReader(r io.Reader, to receiver) *jsonReader {
	in := &meter{r: r}
	return &jsonReader{dec: json.NewDecoder(in), in: in, to: to}
}

// readJSON hands all captures of r to the receiver.
func readJSON(r io.Reader, to receiver, whole bool) error {
	j := newJSONReader(r, to)
	j.whole = whole
	in := j.in
	for n := 0; ; n++ {
		in.budget = maxValue
		token, err := j.dec.Token()
		if errors.Is(err, io.EOF) && n > 0 {
			return nil
		}
		if err == nil && token != json.Delim('{') {
			err = errors.New("a capture is an object with \"images\" and \"threads\"")
		}
		if err == nil {
			err = j.capture()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("symbolize: JSON at byte %d: %w", j.dec.InputOffset(), err)
		}
	}
}

// capture reads the members of one capture behind its brace.
func (j *jsonReader) capture() error {
	if err := j.to.begin(); err != nil {
		return err
	}
	var images []*Image
	var extra [][]member
	var waiting []deferredThread
	known := false
	err := j.object(func(key string) error {
		switch key {
		case "images":
			known = true
			if err := j.array("images", func(int) error { return j.image(&images, &extra) }); err != nil {
				return err
			}
			return j.to.images(images, extra)
		case "threads":
			return j.array("threads", func(int) error {
				if known && !j.whole {
					return j.thread(j.to)
				}
				var t deferredThread
				if err := j.thread(&holder{&t, &j.deferred}); err != nil {
					return err
				}
				if known {
					j.deferred = 0
					return t.replay(j.to)
				}
				waiting = append(waiting, t)
				return nil
			})
		}
		value, err := j.value(key)
		if err != nil {
			return err
		}
		return j.to.member(member{key, value})
	})
	for k := 0; k < len(waiting) && err == nil; k++ {
		err = waiting[k].replay(j.to)
	}
	if err != nil {
		return err
	}
	return j.to.end()
}

// image reads one image.
func (j *jsonReader) image(images *[]*Image, extra *[][]member) error {
	if len(*images) >= maxImages {
		return fmt.Errorf("more than %d images", maxImages)
	}
	var in struct {
		ID         string
		Path, Arch string
		Load, Size jsonNumber
		FileOffset jsonNumber `json:"file_offset"`
	}
	rest, err := j.record(&in, "id", "path", "arch", "load", "size", "file_offset")
	if err != nil {
		return err
	}
	im := &Image{Path: in.Path, Arch: in.Arch, Load: in.Load.value, Size: in.Size.value, Offset: in.FileOffset.value}
	var ok bool
	if im.ID, ok = parseID(in.ID); !ok {
		return fmt.Errorf("id: %.60q is not hexadecimal", in.ID)
	}
	if !in.Load.given {
		return fmt.Errorf("image %s: no load address", im.Name())
	}
	*images, *extra = append(*images, im), append(*extra, rest)
	return nil
}

// thread reads one thread and hands it to to, which may keep it.
func (j *jsonReader) thread(to threadReceiver) error {
	if err := j.open('{', "a thread"); err != nil {
		return err
	}
	var tid json.RawMessage
	var name string
	var rest []member
	begun := false
	err := j.object(func(key string) (err error) {
		var value json.RawMessage
		switch {
		case key == "frames":
			if !begun {
				begun = true
				if err := to.thread(tid, name); err != nil {
					return err
				}
			}
			return j.array(key, func(int) error { return j.frame(to) })
		case key == "tid" && !begun:
			tid, err = j.value(key)
			return err
		case key == "name" && !begun:
			if value, err = j.value(key); err == nil {
				err = json.Unmarshal(value, &name)
			}
			return err
		}
		if value, err = j.value(key); err == nil {
			rest = append(rest, member{key, value})
		}
		return err
	})
	if err == nil && !begun {
		err = to.thread(tid, name)
	}
	if err != nil {
		return err
	}
	return to.endThread(rest)
}

// frame reads one frame: an object, or only its address.
func (j *jsonReader) frame(to threadReceiver) error {
	raw, err := j.value("a frame")
	if err != nil {
		return err
	}
	if a, ok := quickFrame(raw); ok {
		return to.frame(&Frame{Address: a}, nil)
	}
	var in struct {
		Address     jsonNumber
		Kind        string
		Interrupted bool
	}
	var rest []member
	if raw[0] == '{' {
		rest, err = decodeRecord(raw, &in, "address")
	} else {
		err = json.Unmarshal(raw, &in.Address)
	}
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	if !in.Address.given {
		return errors.New("frame: no address")
	}
	f := Frame{Address: in.Address.value}
	switch {
	case in.Kind == "signal":
		f.Kind = Signal
	case in.Interrupted || in.Kind == "interrupted":
		f.Kind = Exact
	case in.Kind == "return":
		f.Kind = Return
	}
	// What the answer has itself must not stand there twice.
	rest = slices.DeleteFunc(rest, func(m member) bool {
		return m.key == "image" || m.key == "offset" || m.key == "inline" || m.key == "reason"
	})
	return to.frame(&f, rest)
}

// record reads one object into the struct at to and returns the members besides known.
func (j *jsonReader) record(to any, known ...string) ([]member, error) {
	raw, err := j.value("a list's item")
	if err != nil {
		return nil, err
	}
	return decodeRecord(raw, to, known...)
}

func decodeRecord(raw json.RawMessage, to any, known ...string) ([]member, error) {
	if err := json.Unmarshal(raw, to); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	var rest []member
	for key, value := range all {
		if !slices.Contains(known, key) {
			rest = append(rest, member{key, value})
		}
	}
	slices.SortFunc(rest, func(a, b member) int { return strings.Compare(a.key, b.key) })
	return rest, nil
}

// object calls each for every key of an object whose brace has been read.
func (j *jsonReader) object(each func(key string) error) error {
	for {
		j.in.budget = maxValue
		token, err := j.dec.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return nil // its end: the decoder lets nothing else stand here
		}
		if err := each(key); err != nil {
			return err
		}
	}
}

// array calls each before every item of an array; null is an empty one.
func (j *jsonReader) array(what string, each func(n int) error) error {
	j.in.budget = maxValue
	token, err := j.dec.Token()
	if err != nil {
		return err
	}
	if token == nil {
		return nil
	}
	if token != json.Delim('[') {
		return fmt.Errorf("%s: not a list", what)
	}
	for n := 0; ; n++ {
		j.in.budget = maxValue
		if !j.dec.More() {
			_, err = j.dec.Token()
			return err
		}
		if err := each(n); err != nil {
			return fmt.Errorf("%s[%d]: %w", what, n, err)
		}
	}
}

// open reads an opening brace.
func (j *jsonReader) open(brace rune, what string) error {
	j.in.budget = maxValue
	token, err := j.dec.Token()
	if err != nil {
		return err
	}
	if token != json.Delim(brace) {
		return fmt.Errorf("%s starts with %c", what, brace)
	}
	return nil
}

// value reads any one value.
func (j *jsonReader) value(what string) (json.RawMessage, error) {
	j.in.budget = maxValue
	var raw json.RawMessage
	if err := j.dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return raw, nil
}

// meter refuses to read on when one value takes too much.
type meter struct {
	r      io.Reader
	budget int
}

// Read implements io.Reader.
func (m *meter) Read(b []byte) (int, error) {
	if m.budget <= 0 {
		return 0, fmt.Errorf("one value has more than %d bytes", maxValue)
	}
	n, err := m.r.Read(b)
	m.budget -= n
	return n, err
}
