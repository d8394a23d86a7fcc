package recorder

import (
	"os"
	"sync"

	"github.com/callreel/callreel/reel"
)

// tables are the images and functions that the recordings of a tree have put into their reel: a program that is started again and
// again stands there once.
type tables struct {
	to     Destination
	mu     sync.Mutex // guards what follows
	images map[imageKey]reel.ImageID
	known  map[functionKey]uint32
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

// image returns the number of an image, which is that of one with the same file in another process, if there has been one. The reel
// says where it is in the first of them.
func (t *tables) image(im reel.Image, file os.FileInfo) (reel.ImageID, error) {
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

// functions calls put with the number of each function of list, new ones for those that have none yet.
func (t *tables) functions(list []reel.Function, put func(i int, id uint32)) error {
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
