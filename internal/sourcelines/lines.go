package sourcelines

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

// MaxImages is how many images are looked for; a reel may name any number.
const MaxImages = 1024

// Lines keeps the maps of images. It may be used by several goroutines at once.
type Lines struct {
	finder  *symbols.Finder
	maxInfo int64

	mu     sync.Mutex
	maps   map[string]*symbols.Map // by the image's ID; nil for those that have none
	frames []symbols.Frame
}

// New returns Lines that look into the finder's store first, and then for the image's debug information. What has more of
// that than maxInfo bytes is left alone, if maxInfo isn't 0: making a map takes a few times as much memory.
func New(finder *symbols.Finder, maxInfo int64) *Lines {
	return &Lines{finder: finder, maxInfo: maxInfo, maps: map[string]*symbols.Map{}}
}

// Findable reports whether an image can be looked for at all.
func Findable(im *reel.Image) bool { return im.ID != "" && filepath.IsAbs(im.Path) }

// Open looks for the map of an image, and may make it, which may take minutes. It does so once for each image, and for MaxImages
// of them.
func (l *Lines) Open(ctx context.Context, im *reel.Image) {
	if !Findable(im) || l.Opened(im) {
		return
	}
	m := l.find(ctx, im)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.maps[im.ID]; known || len(l.maps) >= MaxImages {
		if m != nil {
			_ = m.Close() // only opened
		}
		return
	}
	l.maps[im.ID] = m
}

// Opened reports whether no Open of the image would find more.
func (l *Lines) Opened(im *reel.Image) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.maps[im.ID]
	return known || len(l.maps) >= MaxImages
}

// Of returns the file and the line of a function, "" and 0 if they aren't known.
func (l *Lines) Of(im *reel.Image, fn *reel.Function) (file string, line uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.maps[im.ID]
	if m == nil || !Findable(im) {
		return "", 0
	}
	l.frames, _ = m.Lookup(fn.Addr, l.frames[:0])
	if len(l.frames) == 0 {
		return "", 0
	}
	// What is inlined at the very entry comes before the function itself.
	frame := &l.frames[len(l.frames)-1]
	return strings.Clone(frame.File()), frame.Line // not from the map, which may be closed
}

// find returns the map of an image, nil where there is none with lines.
func (l *Lines) find(ctx context.Context, im *reel.Image) *symbols.Map {
	if m, err := l.finder.Stored(symbols.Wanted{ID: im.ID, Path: im.Path}); err == nil {
		return m
	}
	if l.maxInfo > 0 && !l.hasInfo(im) {
		return nil
	}
	m, err := l.finder.Find(ctx, symbols.Wanted{ID: im.ID, Path: im.Path})
	if err != nil {
		return nil
	}
	return m
}

// hasInfo says whether the image's debug information is on this machine, and not too large.
func (l *Lines) hasInfo(im *reel.Image) bool {
	file, err := object.OpenID(im.Path, im.ID)
	if err != nil {
		return false
	}
	defer file.Close() // only looked at
	debug := file
	if file.Section(".debug_info") == nil {
		if debug, err = (&object.DebugSearch{Dirs: l.finder.DebugDirs}).Debug(file); err != nil || debug == nil {
			return false
		}
		defer debug.Close() // only looked at
	}
	info := debug.Section(".debug_info")
	return info != nil && info.FileSize <= uint64(l.maxInfo)
}

// Close closes the maps.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, m := range l.maps {
		if m != nil {
			if cerr := m.Close(); err == nil {
				err = cerr
			}
		}
	}
	clear(l.maps)
	return err
}
