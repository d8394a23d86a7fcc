package viewer

import (
	"context"
	"sync"

	"github.com/callreel/callreel/internal/sourcelines"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

// sources tells where functions are in source files. Maps are opened, or made, in the background, one after the other, once
// somebody asks for a function of the image.
type sources struct {
	lines  *sourcelines.Lines
	wanted chan reel.Image

	mu    sync.Mutex
	asked map[string]bool // by ID
}

// maxDebugInfo bounds the debug information that is read for this, in bytes. What is larger can be made by `callreel symbols
// build`, and is found in the store.
const maxDebugInfo = 256 << 20

func newSources(store *symbols.Store, debugDirs []string) *sources {
	return &sources{
		lines:  sourcelines.New(&symbols.Finder{Store: store, DebugDirs: debugDirs, Workers: 1}, maxDebugInfo),
		wanted: make(chan reel.Image, sourcelines.MaxImages), asked: map[string]bool{},
	}
}

// find returns the file and the line of a function, if they are known by now; pending says that they may be, later.
func (s *sources) find(f *reel.File, fn *reel.Function) (file string, line uint32, pending bool) {
	im, ok := f.Image(fn.Image)
	if !ok || !sourcelines.Findable(&im) {
		return "", 0, false
	}
	if s.lines.Opened(&im) {
		file, line = s.lines.Of(&im, fn)
		return file, line, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked[im.ID] && len(s.asked) < sourcelines.MaxImages {
		s.asked[im.ID] = true
		s.wanted <- im // it has room for all
	}
	return "", 0, s.asked[im.ID]
}

// run looks for the maps that are wanted until ctx ends.
func (s *sources) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case im := <-s.wanted:
			s.lines.Open(ctx, &im)
		}
	}
}

func (s *sources) close() error { return s.lines.Close() }
