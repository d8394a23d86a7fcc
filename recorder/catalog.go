package recorder

import (
	"errors"
	"sync"

	"github.com/callreel/callreel/reel"
)

// catalog is the Destination of an armed recording: it keeps what each dump begins with. No events come.
type catalog struct {
	mu     sync.Mutex // guards what follows
	header reel.Header
	images []reel.Image
}

var errCatalog = errors.New("callreel: an armed recording has no reel to write to")

func (c *catalog) Begin(h reel.Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = h
	return nil
}

func (c *catalog) AddImage(m reel.Image) (reel.ImageID, error) {
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
func (c *catalog) create(to namedOutput) (*reel.Writer, error) {
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

func (c *catalog) AddFunctions([]reel.Function) (uint32, error)  { return 0, errCatalog }
func (c *catalog) Thread(reel.Thread) (DestinationThread, error) { return nil, errCatalog }
func (c *catalog) ClockPair(tick uint64, unixNS int64) error     { return nil }
func (c *catalog) Round(uint64) error                            { return nil }
func (c *catalog) Flush() error                                  { return nil }
func (c *catalog) Close() error                                  { return nil }
