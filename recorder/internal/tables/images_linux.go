package tables

import (
	"os"
	"runtime"
	"sync"

	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// Reel takes images and functions, as a [reel.Writer] does. Functions get consecutive numbers, from 1 on.
type Reel interface {
	AddImage(m reel.Image) (reel.ImageID, error)
	AddFunctions(list []reel.Function) (firstID uint32, err error)
}

// Store numbers images and functions.
type Store interface {
	// Image returns the number of an image, which is in file.
	Image(m reel.Image, file os.FileInfo) (reel.ImageID, error)
	// Functions calls put with the number of each function of list.
	Functions(list []reel.Function, put func(i int, id uint32)) error
}

// Own is the Store of a recording that has a reel for itself: whatever comes is new.
type Own struct{ To Reel }

// Image adds an image.
func (o Own) Image(m reel.Image, _ os.FileInfo) (reel.ImageID, error) { return o.To.AddImage(m) }

// Functions adds functions.
func (o Own) Functions(list []reel.Function, put func(i int, id uint32)) error {
	first, err := o.To.AddFunctions(list)
	if err != nil {
		return err
	}
	for i := range list {
		put(i, first+uint32(i))
	}
	return nil
}

// Images are those of one recording.
type Images struct {
	store Store
	also  Noter
	mu    sync.Mutex // guards ids
	ids   map[*mapped.Image]reel.ImageID
}

// NewImages returns the images of a recording, none yet.
func NewImages(store Store) *Images {
	return &Images{store: store, ids: map[*mapped.Image]reel.ImageID{}}
}

// AlsoTo lets n know all images that are added from now on.
func (t *Images) AlsoTo(n Noter) { t.also = n }

// Add puts an image into the reel.
func (t *Images) Add(im *mapped.Image) error {
	about := reel.Image{Path: im.Path, ID: im.Object.ID(), Arch: runtime.GOARCH, Slide: im.Slide, Base: im.Lo, End: im.Hi}
	id, err := t.store.Image(about, im.File)
	if err != nil {
		return err
	}
	if t.also != nil {
		t.also.Image(im)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[im] = id
	return nil
}

// Number is an image's in the reel, 0 if it has none.
func (t *Images) Number(im *mapped.Image) reel.ImageID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[im]
}

// describe is what the reel says of a range's k-th function.
func (t *Images) describe(g *target.IDRange, k uint32) reel.Function {
	f := &g.Arena.Fns[g.At+int(k)]
	t.mu.Lock()
	defer t.mu.Unlock()
	return reel.Function{Name: f.Name, Image: t.ids[g.Image], Addr: f.Addr, Size: f.Size, Tier: reel.TierExitSite}
}
