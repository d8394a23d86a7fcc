package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/viewer"
)

// recordShown records with the page of the reel served meanwhile, and on until a signal. That it can't be served doesn't end
// the recording.
func (f *recordFlags) recordShown(c *cobra.Command, args []string, status *status) error {
	v := &liveView{page: pageFlags{noOpen: f.noOpen, address: "127.0.0.1", debugDirs: f.choice.debugDirs}, reel: &f.output, status: status, begun: make(chan liveServer, 1)}
	v.ctx, v.stop = context.WithCancel(c.Context())
	err := f.record(c, args, status, v)
	if verr := v.stay(c.Context()); err == nil {
		err = verr
	}
	return err
}

// liveView is the page of a reel that is being recorded.
type liveView struct {
	page   pageFlags
	reel   *string // its path
	status *status

	begins bool            // the page is being started, or was
	begun  chan liveServer // gets what that has come to, once
	taken  bool            // that was taken from there
	server *liveServer     // nil before that, and if it can't be served
	ctx    context.Context
	stop   context.CancelFunc

	ending context.Context // ends at a signal after the recording; nil before that
	heard  context.CancelFunc
}

// liveServer is what beginning has come to.
type liveServer struct {
	*viewer.Server
	err    error  // there is no server
	closed error  // the browser was not opened
	forget func() // takes back what opening the browser has left
	over   chan error
}

// progress starts the page once the recording goes on, which is when there is a reel. It doesn't keep the recorder waiting.
func (v *liveView) progress(then func(recorder.Progress)) func(recorder.Progress) {
	return func(p recorder.Progress) {
		v.begin()
		select {
		case s := <-v.begun:
			v.take(s)
		default:
		}
		then(p)
	}
}

// recorded says that signals are for the page now, however much there is still to be written: one that came between would
// otherwise be the recording's, which has ended, or nobody's.
func (v *liveView) recorded(ctx context.Context) { v.ending, v.heard = untilSignal(ctx) }

// begin starts the page, once.
func (v *liveView) begin() {
	if v.begins {
		return
	}
	v.begins = true
	go func() {
		server, err := v.page.start([]string{*v.reel}, true)
		if err != nil {
			v.begun <- liveServer{err: err}
			return
		}
		s := liveServer{Server: server, forget: func() {}, over: make(chan error, 1)}
		if !v.page.noOpen {
			s.forget, s.closed = openBrowser(server.URL())
		}
		v.begun <- s
		s.over <- server.Serve(v.ctx)
	}()
}

// take says what beginning has come to.
func (v *liveView) take(s liveServer) {
	v.taken = true
	if s.err != nil {
		v.status.notice("the page is not served: %v", s.err)
		return
	}
	v.server = &s
	v.status.notice("%s", s.URL())
	if s.closed != nil {
		v.status.notice("the browser was not opened: %v", s.closed)
	}
}

// stay leaves the page there until a signal, now that the recording has ended.
func (v *liveView) stay(ctx context.Context) error {
	defer v.stop()
	if v.ending == nil {
		v.recorded(ctx)
	}
	defer v.heard()
	if v.begins && !v.taken {
		v.take(<-v.begun)
	}
	if v.server == nil {
		return nil
	}
	s := v.server
	defer s.forget()
	s.Ended()
	v.status.notice("the recording has ended; the page is there until Ctrl-C")
	select {
	case <-v.ending.Done():
		v.stop()
		return errors.Join(<-s.over, s.Close())
	case err := <-s.over:
		return errors.Join(err, s.Close())
	}
}
