package symbolize

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// readText hands the images and stacks of a text to the receiver, as one capture. Since
// images may stand anywhere, frames are kept until the end, at most maxDeferred.
func readText(ctx context.Context, r io.Reader, given []*Image, to receiver) error {
	t := &textReader{images: given}
	err := eachLine(r, func(text, _ string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l := parseLine(text)
		return t.line(&l)
	}, func([]byte) error { return nil }, func() error { return nil })
	if err != nil {
		return err
	}
	if err := t.image(t.join.flush()); err != nil {
		return err
	}
	if err := to.begin(); err != nil {
		return err
	}
	if err := to.images(t.images, nil); err != nil {
		return err
	}
	for k := range t.threads {
		if err := t.threads[k].replay(to); err != nil {
			return err
		}
	}
	return to.end()
}

// textReader collects a text's images and stacks.
type textReader struct {
	images      []*Image
	threads     []deferredThread
	join        joiner
	ids         moduleIDs
	interrupted bool // other text stands between the last frame and the next
	exact       bool // a signal interrupted the next frame
	frames      int
}

func (t *textReader) line(l *line) error {
	if err := t.image(t.join.line(l)); err != nil {
		return err
	}
	switch l.kind {
	case imageLine:
		t.interrupted = true
		return t.image(&l.image)
	case moduleLine:
		return t.ids.add(&l.image)
	case threadLine:
		return t.begin(l.tid, l.name)
	case signalLine:
		t.exact = true
	case frameLine:
		return t.frame(l)
	case framePlain:
		if l.index == 0 && (len(t.threads) == 0 || len(t.threads[len(t.threads)-1].frames) > 0) {
			return t.begin("", "")
		}
		t.exact = false
	case otherLine, mappingLine:
		t.interrupted = true
	}
	return nil
}

func (t *textReader) image(im *Image) error {
	if im == nil {
		return nil
	}
	if len(t.images) >= maxImages {
		return fmt.Errorf("symbolize: more than %d images", maxImages)
	}
	t.images = append(t.images, im)
	return nil
}

// begin starts a thread.
func (t *textReader) begin(tid, name string) error {
	if t.frames++; t.frames > maxDeferred {
		return fmt.Errorf("symbolize: more than %d frames and threads in one text", maxDeferred)
	}
	t.interrupted, t.exact = false, false
	h := deferredThread{name: name}
	if tid != "" {
		h.tid = json.RawMessage(strconv.Quote(tid))
		if v, err := strconv.ParseUint(tid, 10, 53); err == nil {
			h.tid = json.RawMessage(strconv.FormatUint(v, 10))
		}
	}
	t.threads = append(t.threads, h)
	return nil
}

// frame adds a frame to the thread that is open, or to a new one.
func (t *textReader) frame(l *line) error {
	last := len(t.threads) - 1
	// Numbers tell where a stack begins; without them any other line between two frames does.
	fresh := last < 0 || l.index <= 0 && len(t.threads[last].frames) > 0 && (l.index == 0 || t.interrupted)
	if fresh {
		if err := t.begin("", ""); err != nil {
			return err
		}
		last++
	}
	if t.frames++; t.frames > maxDeferred {
		return fmt.Errorf("symbolize: more than %d frames and threads in one text", maxDeferred)
	}
	t.interrupted = false
	if t.exact {
		l.frame.Kind, t.exact = Exact, false
	}
	t.ids.fill(&l.frame)
	t.threads[last].frames = append(t.threads[last].frames, deferredFrame{Frame: l.frame})
	return nil
}
