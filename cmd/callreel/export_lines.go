package main

import (
	"context"
	"path/filepath"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

// sourceLines tells where functions are in source files, by the maps of the user's store and what debug information is on this machine; an image
// must be, by its ID, the one that was recorded.
type sourceLines struct {
	ctx    context.Context
	status *status
	finder *symbols.Finder
	maps   map[string]*symbols.Map // by the image's ID; nil for those that have none
	frames []symbols.Frame
}

// maxLineImages is how many images are looked for: a reel may name any number.
const maxLineImages = 1024

func newSourceLines(ctx context.Context, status *status) *sourceLines {
	s := &sourceLines{ctx: ctx, status: status, finder: &symbols.Finder{}, maps: map[string]*symbols.Map{}}
	if dir, err := defaultStore(); err == nil {
		// Without a store maps are made in memory.
		s.finder.Store, _ = symbols.OpenStore(dir)
	}
	return s
}

func (s *sourceLines) of(m reel.Image, fn reel.Function) (file string, line uint32) {
	found := s.find(m)
	if found == nil {
		return "", 0
	}
	s.frames, _ = found.Lookup(fn.Addr, s.frames[:0])
	if len(s.frames) == 0 {
		return "", 0
	}
	// What is inlined at the very entry comes before the function itself.
	frame := &s.frames[len(s.frames)-1]
	return frame.File(), frame.Line
}

func (s *sourceLines) find(m reel.Image) *symbols.Map {
	found, known := s.maps[m.ID]
	if known || m.ID == "" || !filepath.IsAbs(m.Path) || len(s.maps) >= maxLineImages || s.ctx.Err() != nil {
		return found
	}
	s.status.show("reading the symbols of %s", m.Path)
	found, err := s.finder.Find(s.ctx, symbols.Wanted{ID: m.ID, Path: m.Path})
	if err != nil {
		found = nil // no symbols: functions keep the names that they have
	}
	s.maps[m.ID] = found
	return found
}

func (s *sourceLines) close() {
	for _, m := range s.maps {
		if m != nil {
			_ = m.Close() // only read from
		}
	}
}
