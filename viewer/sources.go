package viewer

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

// sources tells where functions are in source files: by the symbol maps of images that are on this machine and are, by their
// IDs, those that were recorded. Maps are opened, or made, in the background, one after the other, once somebody asks for a
// function of the image.
type sources struct {
	finder *symbols.Finder
	wanted chan reel.Image

	mu     sync.Mutex
	asked  map[string]bool // by ID
	maps   map[string]*symbols.Map
	frames []symbols.Frame
}

const (
	// maxImages is how many images are looked for; a reel may name any number.
	maxImages = 1024
	// maxDebugInfo bounds the debug information that is read for this, in bytes: making a map takes a few times as much memory.
	// What is larger can be made by `callreel symbols build`, and is found in the store.
	maxDebugInfo = 256 << 20
)

func newSources(r *recording) *sources {
	return &sources{
		finder: &symbols.Finder{Store: r.server.opt.Store, Workers: 1},
		wanted: make(chan reel.Image, maxImages), asked: map[string]bool{}, maps: map[string]*symbols.Map{},
	}
}

// find returns the file and the line of a function, if they are known by now; pending says that they may be, later.
func (s *sources) find(f *reel.File, fn *reel.Function) (file string, line uint32, pending bool) {
	im, ok := f.Image(fn.Image)
	if !ok || im.ID == "" || !filepath.IsAbs(im.Path) {
		return "", 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, looked := s.maps[im.ID]
	if !looked {
		if !s.asked[im.ID] && len(s.asked) < maxImages {
			s.asked[im.ID] = true
			s.wanted <- im // it has room for all
		}
		return "", 0, s.asked[im.ID]
	}
	if m == nil {
		return "", 0, false
	}
	s.frames, _ = m.Lookup(fn.Addr, s.frames[:0])
	if len(s.frames) == 0 {
		return "", 0, false
	}
	// What is inlined at the very entry comes before the function itself.
	frame := &s.frames[len(s.frames)-1]
	return strings.Clone(frame.File()), frame.Line, false
}

// run looks for the maps that are wanted until ctx ends.
func (s *sources) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case im := <-s.wanted:
			m := s.open(ctx, &im)
			s.mu.Lock()
			s.maps[im.ID] = m
			s.mu.Unlock()
		}
	}
}

// open returns the map of an image, nil where there is none with lines.
func (s *sources) open(ctx context.Context, im *reel.Image) *symbols.Map {
	if s.finder.Store != nil {
		if m, err := s.finder.Store.Get(im.ID); err == nil {
			return m
		}
	}
	if !hasDebug(im) {
		return nil
	}
	m, err := s.finder.Find(ctx, symbols.Wanted{ID: im.ID, Path: im.Path})
	if err != nil {
		return nil
	}
	return m
}

// hasDebug says whether the image's debug information is on this machine, and of a size to be read by the way.
func hasDebug(im *reel.Image) bool {
	file, err := object.OpenID(im.Path, im.ID)
	if err != nil {
		return false
	}
	defer file.Close() // only looked at
	debug := file
	if file.Section(".debug_info") == nil {
		if debug, err = (&object.DebugSearch{}).Debug(file); err != nil || debug == nil {
			return false
		}
		defer debug.Close() // only looked at
	}
	info := debug.Section(".debug_info")
	return info != nil && info.FileSize <= maxDebugInfo
}

func (s *sources) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, m := range s.maps {
		if m != nil {
			if cerr := m.Close(); err == nil {
				err = cerr
			}
		}
	}
	clear(s.maps)
	return err
}
