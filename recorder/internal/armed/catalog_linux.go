package armed

import (
	"errors"
	"sync"

	"github.com/callreel/callreel/reel"
)

// Catalog keeps what each dump begins with: the header, and the images. It takes these as a reel does, and numbers functions as all dumps do.
type Catalog struct {
	mu     sync.Mutex // guards what follows
	header reel.Header
	images []reel.Image
	// functions is how many there are.
	functions uint32
}

// Begin keeps the header.
func (c *Catalog) Begin(h reel.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = h
}

// AddImage adds an image.
func (c *Catalog) AddImage(m reel.Image) (reel.ImageID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images = append(c.images, m)
	return reel.ImageID(len(c.images)), nil
}

// namedOutput is a file for a reel.
type namedOutput interface {
	reel.Output
	Name() string
}

// create begins a reel with the images there are.
func (c *Catalog) create(to namedOutput) (*reel.Writer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := reel.NewWriter(to.Name(), to, c.header)
	if err != nil {
		return nil, err
	}
	for _, m := range c.images {
		if _, err := w.AddImage(m); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// AddFunctions gives functions the numbers that they have in all dumps.
func (c *Catalog) AddFunctions(list []reel.Function) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uint64(c.functions)+uint64(len(list)) > reel.MaxID {
		return 0, errors.New("callreel: too many functions")
	}
	first := c.functions + 1
	c.functions += uint32(len(list))
	return first, nil
}

// mode is which events of the dumps carry the time.
func (c *Catalog) mode() reel.ClockMode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header.Clock.Mode
}
