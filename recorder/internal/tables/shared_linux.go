package tables

import (
	"os"
	"sync"

	"github.com/callreel/callreel/reel"
)

// Shared is the Store of recordings that have one reel: a program that is started again and again stands there once.
type Shared struct {
	to     Reel
	mu     sync.Mutex // guards what follows, and the order in which to is called
	images map[imageKey]reel.ImageID
	known  map[functionKey]uint32
}

// NewShared returns the tables of a reel that has neither images nor functions yet.
func NewShared(to Reel) *Shared {
	return &Shared{to: to, images: map[imageKey]reel.ImageID{}, known: map[functionKey]uint32{}}
}

// imageKey names a file as it is.
type imageKey struct {
	path, id    string
	size, mtime int64
}

// functionKey names a function by its image and link address.
type functionKey struct {
	image reel.ImageID
	addr  uint64
}

// Image returns the number of an image, which is that of one with the same file in another process, if there has been one. The reel
// says where it is in the first of them.
func (t *Shared) Image(im reel.Image, file os.FileInfo) (reel.ImageID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := imageKey{im.Path, im.ID, file.Size(), file.ModTime().UnixNano()}
	if id, found := t.images[key]; found {
		return id, nil
	}
	id, err := t.to.AddImage(im)
	if err != nil {
		return 0, err
	}
	if len(t.images) >= maxTable {
		clear(t.images) // what comes again stands there twice
	}
	t.images[key] = id
	return id, nil
}

// maxTable bounds how many images are remembered, and how many functions: programs can be made without number.
const maxTable = 1 << 18

// Functions calls put with the number of each function of list, new ones for those that have none yet.
func (t *Shared) Functions(list []reel.Function, put func(i int, id uint32)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var fresh []reel.Function
	for i := range list {
		if _, found := t.known[keyOfFunction(&list[i])]; !found {
			fresh = append(fresh, list[i])
		}
	}
	if len(fresh) > 0 {
		first, err := t.to.AddFunctions(fresh)
		if err != nil {
			return err
		}
		if len(t.known)+len(fresh) > max(maxTable, len(list)) {
			known := make(map[functionKey]uint32, len(list)) // as above, but for those at hand
			for i := range list {
				if id, found := t.known[keyOfFunction(&list[i])]; found {
					known[keyOfFunction(&list[i])] = id
				}
			}
			t.known = known
		}
		for i := range fresh {
			t.known[keyOfFunction(&fresh[i])] = first + uint32(i)
		}
	}
	for i := range list {
		put(i, t.known[keyOfFunction(&list[i])])
	}
	return nil
}

func keyOfFunction(f *reel.Function) functionKey { return functionKey{f.Image, f.Addr} }
