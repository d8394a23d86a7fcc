package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

const (
	framesInBatch = 1000
	framesInStack = 25
	// addressesOfImage is how many addresses of an image captures draw from.
	addressesOfImage = 400_000
)

// mappedStore is a folder with the maps of images, as symbols build fills it and symbols serve serves it.
type mappedStore struct {
	folder string
	images []mappedImage
}

type mappedImage struct {
	name, id, path string // path of its map
	base           uint64
	addresses      []uint64 // in its functions
}

// mappedImages makes the maps of real images: in C, C++ and Go, with all the inlining that their compilers did.
func mappedImages(ctx context.Context, c config) (*mappedStore, error) {
	m := &mappedStore{folder: filepath.Join(c.dir, "maps")}
	for _, in := range []struct {
		name string
		make func(context.Context, config) (string, error)
	}{{"libc", libc}, {"ceph-osd", cephOSD}, {"C++ by clang", clangProgram}, {"Go program", goProgram}} {
		file, err := in.make(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
		im, err := object.Open(file)
		if err != nil {
			return nil, err
		}
		id := im.ID()
		if err := im.Close(); err != nil {
			return nil, err
		}
		image := mappedImage{name: in.name, id: id, path: filepath.Join(m.folder, filepath.FromSlash(mapKey(id)))}
		if err := os.MkdirAll(filepath.Dir(image.path), 0o700); err != nil {
			return nil, err
		}
		if said, err := exec.CommandContext(ctx, c.callreel, "symbols", "build", "-o", image.path, file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", in.name, err, said)
		}
		if image.addresses, err = functionAddresses(file, addressesOfImage); err != nil {
			return nil, err
		}
		opened, err := symbols.Open(image.path)
		if err != nil {
			return nil, err
		}
		image.base = opened.BaseAddr()
		if err := opened.Close(); err != nil {
			return nil, err
		}
		m.images = append(m.images, image)
	}
	return m, nil
}

// load is where captures say that an image was.
func load(image int) uint64 { return 0x10_0000_0000 * uint64(image+1) }

// captures makes captures of 1,000 frames, other ones for another seed.
func (m *mappedStore) captures(seed uint64, n int) [][]byte {
	return m.capturesOf(seed, n, framesInBatch)
}

// capturesOf makes captures in stacks of 25 frames, out of all images.
func (m *mappedStore) capturesOf(seed uint64, n, frames int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 17))
	var list [][]byte
	for range n {
		b := []byte(`{"images":[`)
		for k, im := range m.images {
			if k > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"id":%q,"load":"%#x","size":%d,"path":"/usr/bin/image-%d"}`, im.id, load(k), 0x8_0000_0000, k)
		}
		b = append(b, `],"threads":[`...)
		for t := range frames / framesInStack {
			if t > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"tid":%d,"frames":[`, t+1)
			for f := range framesInStack {
				if f > 0 {
					b = append(b, ',')
				}
				k := r.IntN(len(m.images))
				im := &m.images[k]
				b = fmt.Appendf(b, `{"address":"%#x"}`, im.addresses[r.IntN(len(im.addresses))]-im.base+load(k))
			}
			b = append(b, `]}`...)
		}
		list = append(list, append(b, `]}`...))
	}
	return list
}

// calls is how many functions there are at an address, on average: one, and those inlined.
func (m *mappedStore) calls() (float64, error) {
	const sample = 10_000
	total, asked := 0, 0
	var frames []symbols.Frame
	for _, im := range m.images {
		opened, err := symbols.Open(im.path)
		if err != nil {
			return 0, err
		}
		for _, a := range im.addresses[:sample] {
			frames, _ = opened.Lookup(a, frames[:0])
			total, asked = total+len(frames), asked+1
		}
		if err := opened.Close(); err != nil {
			return 0, err
		}
	}
	return float64(total) / float64(asked), nil
}
