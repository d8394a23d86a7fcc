package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/control"
	"github.com/callreel/callreel/reel"
)

// What a recorder is asked, and what it answers, are one line of JSON each. An answer is text for whoever has asked, and nothing is done by
// it: the file that it names isn't opened.

// controlRequest is what may be asked.
type controlRequest struct {
	Dump *dumpRequest `json:"dump,omitempty"`
	Set  *SetRequest  `json:"set,omitempty"`
	// Pause asks for a pause, or for its end.
	Pause *pauseRequest `json:"pause,omitempty"`
}

type dumpRequest struct {
	LastNS    int64            `json:"last_ns"`
	Kind      reel.TriggerKind `json:"kind"`
	Condition string           `json:"condition"`
	Detail    string           `json:"detail"`
	TID       int              `json:"tid"`
	FromNS    int64            `json:"from_ns,omitempty"` // since 1970; 0 if it isn't known
	ToNS      int64            `json:"to_ns,omitempty"`
}

type controlAnswer struct {
	Error  string    `json:"error,omitempty"`
	Dumped Dumped    `json:"dumped"`
	Set    SetAnswer `json:"set"`
	// NoMatch and NotSettable say which kind of error it is.
	NoMatch     *NoMatchError `json:"no_match,omitempty"`
	NotSettable bool          `json:"not_settable,omitempty"`
}

// ask sends a request to the recorder of a process.
func ask(ctx context.Context, pid int, q controlRequest) (controlAnswer, error) {
	var a controlAnswer
	if err := process.CodeSupported(); err != nil {
		return a, fmt.Errorf("callreel: process %d: %w", pid, err)
	}
	b, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	line, err := control.Ask(ctx, pid, b)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("callreel: process %d: the answer of its recorder: %w", pid, err)
	}
	switch {
	case a.NoMatch != nil:
		return a, a.NoMatch
	case a.NotSettable:
		return a, fmt.Errorf("callreel: process %d: %w", pid, &notSettable{a.Error})
	case a.Error != "":
		return a, fmt.Errorf("callreel: process %d: its recorder says: %s", pid, a.Error)
	}
	return a, nil
}

// AskForDump asks the armed recorder of a process for a dump of its last moments. Where it was killed, what its rings still hold is dumped. An
// error wraps ErrNoRecorder where there is none.
func AskForDump(ctx context.Context, pid int, q DumpRequest) (Dumped, error) {
	d := &dumpRequest{LastNS: int64(q.Keep), Kind: q.Kind, Condition: q.Condition, Detail: q.Detail, TID: q.TID}
	if !q.From.IsZero() {
		d.FromNS = q.From.UnixNano()
	}
	if !q.To.IsZero() {
		d.ToNS = q.To.UnixNano()
	}
	a, err := ask(ctx, pid, controlRequest{Dump: d})
	if errors.Is(err, ErrNoRecorder) {
		if left, found, lerr := dumpLeft(pid); found {
			return left, lerr
		}
	}
	return a.Dumped, err
}

// listen lets the recording be asked. One that can't be reached goes on.
func (r *recording) listen() {
	if !r.isFirst() && !r.isCoupled() {
		return
	}
	var err error
	if r.control, err = control.Listen(r.s.PID()); err != nil {
		r.notice("callreel: dump and set can't reach this recording: %v", err)
	}
}

// serveControl answers what the recording is asked.
func (r *recording) serveControl(ctx context.Context) {
	if r.control == nil {
		return
	}
	r.control.Serve(func(line []byte) []byte {
		var q controlRequest
		var a controlAnswer
		if err := json.Unmarshal(line, &q); err != nil {
			a.Error = err.Error()
		} else {
			a = r.answer(ctx, q)
		}
		b, err := json.Marshal(a)
		if err != nil {
			return nil // who has asked reads that this is no answer
		}
		return b
	})
}

// answer does what is asked.
func (r *recording) answer(ctx context.Context, q controlRequest) controlAnswer {
	switch {
	case q.Dump != nil:
		return r.reader.dump(ctx, q.Dump)
	case q.Set != nil:
		return r.askedToSet(q.Set)
	case q.Pause != nil:
		return r.askedToPause(q.Pause)
	}
	return controlAnswer{Error: "it doesn't know this request: it is another version of callreel"}
}
