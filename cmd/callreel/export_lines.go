package main

import (
	"context"

	"github.com/callreel/callreel/internal/sourcelines"
	"github.com/callreel/callreel/reel"
)

// sourceLines tells where functions are in source files, by the maps of the user's store and what debug information is on this machine.
type sourceLines struct {
	ctx    context.Context
	status *status
	lines  *sourcelines.Lines
}

func newSourceLines(ctx context.Context, status *status) *sourceLines {
	const anySize, allProcessors = 0, 0
	return &sourceLines{ctx: ctx, status: status, lines: sourcelines.New(openDefaultStore(), anySize, allProcessors)}
}

func (s *sourceLines) of(m reel.Image, fn reel.Function) (file string, line uint32) {
	if sourcelines.Findable(&m) && !s.lines.Opened(&m) && s.ctx.Err() == nil {
		s.status.show("reading the symbols of %s", m.Path)
		s.lines.Open(s.ctx, &m)
	}
	return s.lines.Of(&m, &fn)
}

func (s *sourceLines) close() { _ = s.lines.Close() } // only read from
