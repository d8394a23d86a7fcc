package symbolize

import (
	"encoding/json"
	"fmt"
	"slices"
)

// deferredThread is a thread that came before the images.
type deferredThread struct {
	tid    json.RawMessage
	name   string
	frames []deferredFrame
	extra  []member
}

type deferredFrame struct {
	Frame
	extra []member
}

// holder keeps one thread.
type holder struct {
	t        *deferredThread
	deferred *int // frames and threads deferred, of all captures
}

func (h *holder) take() error {
	if *h.deferred++; *h.deferred > maxDeferred {
		return fmt.Errorf("more than %d frames of one thread, or before \"images\"; put images first", maxDeferred)
	}
	return nil
}

func (h *holder) thread(tid json.RawMessage, name string) error {
	h.t.tid, h.t.name = tid, name
	return h.take()
}

func (h *holder) frame(f *Frame, extra []member) error {
	h.t.frames = append(h.t.frames, deferredFrame{*f, extra})
	return h.take()
}

func (h *holder) endThread(extra []member) error {
	h.t.extra = slices.DeleteFunc(extra, h.t.head)
	return nil
}

// head takes a member that belongs before the frames and stood behind them.
func (h *deferredThread) head(m member) bool {
	switch {
	case m.key == "tid" && h.tid == nil:
		h.tid = m.value
		return true
	case m.key == "name" && h.name == "":
		return json.Unmarshal(m.value, &h.name) == nil
	}
	return false
}

// replay hands the thread on.
func (h *deferredThread) replay(to threadReceiver) error {
	if err := to.thread(h.tid, h.name); err != nil {
		return err
	}
	for k := range h.frames {
		if err := to.frame(&h.frames[k].Frame, h.frames[k].extra); err != nil {
			return err
		}
	}
	return to.endThread(h.extra)
}
