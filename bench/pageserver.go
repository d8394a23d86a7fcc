package main

import (
	"context"
	"fmt"
	"os"
)

// A pageServer is a callreel view that serves.
type pageServer struct {
	*conversation
	url string
}

func startPageServer(ctx context.Context, c config, reel string) (*pageServer, error) {
	t, err := converse(ctx, c.callreel, "view", "--no-open", reel)
	if err != nil {
		return nil, err
	}
	s := &pageServer{conversation: t}
	if s.url, err = t.hear(); err != nil {
		_ = t.kill() // it has said why
		return nil, err
	}
	return s, nil
}

// drawn is true once the page's timeline is on the screen, and exact.
const drawn = `(() => { const c = document.querySelector("canvas.lanes"); return c?.dataset.state === "still" && Number(c.dataset.bars) > 0 })()`

// allRows is the page with rows of three pixels, so that all of them are on the screen.
func (s *pageServer) allRows() string { return s.url + "#h=3" }

// end ends the server as Ctrl-C does, and returns the CPU time that it has used, in seconds.
func (s *pageServer) end() (cpu float64, err error) {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	if err := s.conversation.end(); err != nil {
		return 0, fmt.Errorf("callreel view: %w", err)
	}
	return (s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()).Seconds(), nil
}
