package symbolize

import (
	"bufio"
	"context"
	"io"
	"slices"
)

// maxReport bounds a report that is held until its list of images has come, in bytes.
// Apple's have 50 to 500 KB.
const maxReport = 32 << 20

// Filter copies text from r to w and puts behind each address that falls into an image what
// stands there: "0x401136 [main at /src/a.c:7]". Images are those given and those that the
// text lists before the addresses; see parseLine for the shapes of lines that are known. In
// a line of a stack the return address counts as one, and a frame without a name says why;
// anywhere else addresses are taken as they are, and those without a name stay.
//
// All else goes through unchanged, and what has come is answered before more is waited for;
// only Apple's reports, which list their images at the end, are held until then.
func Filter(ctx context.Context, r io.Reader, w io.Writer, source Source, images ...*Image) error {
	f := &filter{ctx: ctx, w: bufio.NewWriterSize(w, maxLine), s: New(source), given: images}
	if err := f.reset(); err != nil {
		return err
	}
	err := eachLine(r, f.line, f.part, f.pause)
	if err == nil {
		err = f.release()
	}
	if ferr := f.w.Flush(); err == nil {
		err = ferr
	}
	return err
}

type filter struct {
	ctx   context.Context
	w     *bufio.Writer
	s     *Symbolizer
	given []*Image
	walk  Walk
	join  joiner
	ids   moduleIDs

	holding  bool
	listing  bool // the images of a held report
	deferred []deferredLine
	size     int // of what is held, bytes
}

type deferredLine struct {
	text, end string
	line      line
}

// reset leaves the images that were given.
func (f *filter) reset() error { return f.s.SetImages(f.given) }

// pause is called when no more input has come yet.
func (f *filter) pause() error { return f.w.Flush() }

// part lets a piece of a line through that is too long.
func (f *filter) part(piece []byte) error {
	if err := f.release(); err != nil {
		return err
	}
	_, err := f.w.Write(piece)
	return err
}

// line takes one whole line.
func (f *filter) line(text, end string) error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	l := parseLine(text)
	if err := f.learn(&l); err != nil {
		return err
	}
	switch {
	case l.kind == reportLine && !f.holding:
		f.holding = true
		if err := f.reset(); err != nil { // the images of the report before
			return err
		}
	case l.kind == imagesLine:
		f.listing = true
	case f.listing && l.kind != imageLine:
		f.listing = false
		if err := f.release(); err != nil {
			return err
		}
	}
	if !f.holding {
		return f.write(text, end, &l)
	}
	f.deferred = append(f.deferred, deferredLine{text, end, l})
	const overhead = 256 // of a held line
	if f.size += len(text) + overhead; f.size > maxReport {
		return f.release()
	}
	return nil
}

// learn takes images from a line.
func (f *filter) learn(l *line) error {
	done := f.join.line(l)
	if done != nil {
		if err := f.s.AddImage(done); err != nil {
			return err
		}
	}
	switch l.kind {
	case imageLine:
		return f.s.AddImage(&l.image)
	case moduleLine:
		return f.ids.add(&l.image)
	}
	return nil
}

// release writes what was held.
func (f *filter) release() error {
	if !f.holding {
		return nil
	}
	f.holding, f.size = false, 0
	deferred := f.deferred
	f.deferred = nil
	for k := range deferred {
		if err := f.write(deferred[k].text, deferred[k].end, &deferred[k].line); err != nil {
			return err
		}
	}
	return nil
}

// write writes a line with its names.
func (f *filter) write(text, end string, l *line) error {
	switch l.kind {
	case frameLine:
		text = f.frame(text, l)
	case framePlain:
		f.walk = Walk{inside: true}
	case signalLine:
		f.walk.Interrupted()
	case threadLine:
		f.walk = Walk{}
	default:
		f.walk.inside = false // a list of addresses ends here
		if l.kind == otherLine {
			text = f.addresses(text)
		}
	}
	f.w.WriteString(text)
	_, err := f.w.WriteString(end)
	return err
}

// frame puts a name into a frame's line.
func (f *filter) frame(text string, l *line) string {
	if l.index == 0 {
		f.walk = Walk{}
	}
	var n Named
	f.ids.fill(&l.frame)
	f.s.Next(f.ctx, &f.walk, &l.frame, &n)
	if n.Image == nil && n.Reason == reasonNoImage && len(f.s.space.pieces) == 0 {
		return text // nothing was asked
	}
	return text[:l.after] + " [" + note(&n) + "]" + text[l.after:]
}

// addresses puts names behind the addresses of any other text.
func (f *filter) addresses(text string) string {
	if len(f.s.space.pieces) == 0 {
		return text
	}
	var out []byte
	done := 0
	for at := 0; at < len(text); {
		if !isWord(text[at]) {
			at++
			continue
		}
		end := at + wordEnd(text[at:])
		if v, ok := addressWord(text[at:end]); ok && f.s.Holds(v) {
			var n Named
			if f.s.Exact(f.ctx, v, &n); len(n.Calls) > 0 {
				out = append(out, text[done:end]...)
				out = append(append(append(out, " ["...), note(&n)...), ']')
				done = end
			}
		}
		at = end
	}
	if done == 0 {
		return text
	}
	return string(slices.Concat(out, []byte(text[done:])))
}

// addressWord reads a word that may be an address: "0x…", or at least eight hexadecimal
// digits, as kernels write them.
func addressWord(word string) (uint64, bool) {
	if v, ok := parse0x(word); ok {
		return v, true
	}
	if len(word) < 8 {
		return 0, false
	}
	return parseHex(word)
}
