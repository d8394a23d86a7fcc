package armed

import (
	"errors"
	"fmt"
	"sync"

	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/reel"
)

// Catalog keeps what each dump begins with: the header, and the images. It takes these as a reel does, and numbers functions as all dumps do.
type Catalog struct {
	mu     sync.Mutex // guards what follows
	header reel.Header
	images []reel.Image
	// functions have their places, from 1 on, as their numbers in all dumps.
	functions []reel.Function
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

// create begins a reel with the images and functions there are.
func (c *Catalog) create(to namedOutput) (*catalogued, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := reel.NewWriter(to.Name(), to, c.header)
	if err != nil {
		return nil, err
	}
	d := &catalogued{Writer: w, catalog: c}
	if err := d.complete(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return d, nil
}

// catalogued is a dump that is being written. It has what its catalog has: functions have the same numbers in all.
type catalogued struct {
	*reel.Writer
	catalog           *Catalog
	images, functions int // that are in it
}

// Complete puts what the catalog has got since into the dump. It comes before events of it do.
func (d *catalogued) Complete() error {
	d.catalog.mu.Lock()
	defer d.catalog.mu.Unlock()
	return d.complete()
}

// complete is Complete. The caller holds the catalog's mu.
func (d *catalogued) complete() error {
	for _, m := range d.catalog.images[d.images:] {
		if _, err := d.AddImage(m); err != nil {
			return err
		}
		d.images++
	}
	fresh := d.catalog.functions[d.functions:]
	if len(fresh) == 0 {
		return nil
	}
	first, err := d.AddFunctions(fresh)
	if err == nil && int(first) != d.functions+1 {
		err = fmt.Errorf("callreel: the reel's next function is %d, not %d", first, d.functions+1)
	}
	d.functions += len(fresh)
	return err
}

// names are a process's functions in a dump.
type names struct {
	functions *tables.Late
	to        *catalogued
}

// Translate gives events the numbers that their functions have in all dumps.
func (n names) Translate(events []reel.Event) error {
	if err := n.functions.Translate(events); err != nil {
		return err
	}
	return n.to.Complete()
}

// IDOf is the number of a function, by the target's ID; 0 if there is none.
func (n names) IDOf(id uint32) (uint32, error) {
	of := n.functions.IDOf(id)
	return of, n.to.Complete()
}

// AddFunctions gives functions the numbers that they have in all dumps.
func (c *Catalog) AddFunctions(list []reel.Function) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.functions)+len(list) > reel.MaxID {
		return 0, errors.New("callreel: too many functions")
	}
	first := uint32(len(c.functions)) + 1
	c.functions = append(c.functions, list...)
	return first, nil
}

// mode is which events of the dumps carry the time.
func (c *Catalog) mode() reel.ClockMode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header.Clock.Mode
}
