package recorder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/reel"
)

// A recorder listens on a socket, named by the process it records, so that other callreels can ask it to dump and to change what it
// records. Each side looks who the other is: requests come from the recorder's own user or root, and answers from that user, whose socket
// it is. A request and its answer are one line of JSON each. An answer is text for whoever has asked, and nothing is done by it: the file
// that it names isn't opened.

const (
	answerTimeout  = time.Minute // for a dump of large rings to a slow disk
	maxControlLine = 1 << 16
)

// controlRequest is what may be asked.
type controlRequest struct {
	Dump *dumpRequest `json:"dump,omitempty"`
	Set  *SetRequest  `json:"set,omitempty"`
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

// control serves requests.
type control struct {
	listener *net.UnixListener
	place    *place
	handle   func(controlRequest) controlAnswer
	wg       sync.WaitGroup
}

// begin serves requests.
func (c *control) begin(handle func(controlRequest) controlAnswer) {
	c.handle = handle
	c.wg.Go(c.serve)
}

// close ends serving, when the requests that are being served have their answers.
func (c *control) close() {
	if c != nil {
		c.place.leave()
		_ = c.listener.Close()
		c.wg.Wait()
	}
}

// serve takes one request after the other: each may stop the recording for a moment.
func (c *control) serve() {
	for {
		conn, err := c.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors
			continue
		}
		c.answer(conn)
		_ = conn.Close()
	}
}

func (c *control) answer(conn *net.UnixConn) {
	if err := mayAsk(conn); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(controlTimeout))
	var q controlRequest
	line, err := readLine(conn)
	if err != nil {
		return
	}
	var a controlAnswer
	if err := json.Unmarshal(line, &q); err != nil {
		a.Error = err.Error()
	} else {
		a = c.handle(q)
	}
	_ = conn.SetDeadline(time.Now().Add(controlTimeout))
	b, err := json.Marshal(a)
	if err == nil {
		_, _ = conn.Write(append(b, '\n'))
	}
}

// readLine reads one line of bounded length.
func readLine(r io.Reader) ([]byte, error) {
	return bufio.NewReaderSize(io.LimitReader(r, maxControlLine), maxControlLine).ReadBytes('\n')
}

// ask sends a request to the recorder of a process.
func ask(ctx context.Context, pid int, q controlRequest) (controlAnswer, error) {
	var a controlAnswer
	if err := process.Supported(); err != nil {
		return a, fmt.Errorf("callreel: process %d: %w", pid, err)
	}
	conn, err := dialControl(ctx, pid)
	if err != nil {
		return a, fmt.Errorf("callreel: process %d: %w", pid, err)
	}
	defer conn.Close()
	b, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return a, fmt.Errorf("callreel: process %d: asking its recorder: %w", pid, err)
	}
	line, err := readLine(conn)
	if err != nil {
		return a, fmt.Errorf("callreel: process %d: its recorder gives no answer: %w", pid, err)
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

// AskForDump asks the armed recorder of a process for a dump of its last moments. An error wraps ErrNoRecorder where there is none.
func AskForDump(ctx context.Context, pid int, q DumpRequest) (Dumped, error) {
	d := &dumpRequest{LastNS: int64(q.Keep), Kind: q.Kind, Condition: q.Condition, Detail: q.Detail, TID: q.TID}
	if !q.From.IsZero() {
		d.FromNS = q.From.UnixNano()
	}
	if !q.To.IsZero() {
		d.ToNS = q.To.UnixNano()
	}
	a, err := ask(ctx, pid, controlRequest{Dump: d})
	return a.Dumped, err
}

// listen lets the recording be asked. One that can't be reached goes on.
func (r *recording) listen() {
	if r.isSub() {
		return
	}
	var err error
	if r.control, err = listenControl(r.s.Process.Pid()); err != nil {
		r.notice("%v", err)
	}
}

// serveControl answers what the recording is asked.
func (r *recording) serveControl(ctx context.Context, held *armed) {
	if r.control == nil {
		return
	}
	r.control.begin(func(q controlRequest) controlAnswer {
		switch {
		case q.Dump != nil && held == nil && r.opt.To != nil:
			return controlAnswer{Error: "it only counts calls (callreel top) and keeps none"}
		case q.Dump != nil && held == nil:
			return controlAnswer{Error: "it isn't armed (record --when): all that it records is in " + absolute(r.opt.Output)}
		case q.Dump != nil:
			return held.askedToDump(ctx, q.Dump)
		case q.Set != nil:
			return r.askedToSet(q.Set, held)
		}
		return controlAnswer{Error: "it doesn't know this request: it is another version of callreel"}
	})
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// askedToDump waits for a dump that somebody has asked for.
func (a *armed) askedToDump(ctx context.Context, q *dumpRequest) controlAnswer {
	if q.LastNS < 0 || q.Kind > reel.TriggerEnd {
		return controlAnswer{Error: "not a request for a dump"}
	}
	done := make(chan controlAnswer, 1)
	request := DumpRequest{Kind: q.Kind, Condition: q.Condition, Detail: q.Detail, TID: q.TID, Keep: time.Duration(q.LastNS),
		Answer: func(d Dumped, err error) {
			d.File = absolute(d.File)
			answer := controlAnswer{Dumped: d}
			if err != nil {
				answer.Error = err.Error()
			}
			done <- answer
		}}
	if q.FromNS > 0 {
		request.From = time.Unix(0, q.FromNS)
	}
	if q.ToNS > 0 {
		request.To = time.Unix(0, q.ToNS)
	}
	if !a.ask(ctx, request) {
		return controlAnswer{Error: "the recording is just ending"}
	}
	return <-done
}
