package recorder

import (
	"os"
	"sync"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
)

// planCache keeps the plans of files, for the programs of a tree: most share their libraries, and many are started again and
// again.
type planCache struct {
	mu    sync.Mutex
	plans map[planKey]*plan
}

// planKey names a file as it is.
type planKey struct {
	dev, inode  uint64
	size, mtime int64
}

// plan is a file's; once it is made it isn't changed any more.
type plan struct {
	mu     sync.Mutex
	made   bool
	object *object.Image
	probe  *probe.Image
	plan   []probe.Function
}

func keyOf(m process.Mapping, fi os.FileInfo) planKey {
	return planKey{m.Dev, m.Inode, fi.Size(), fi.ModTime().UnixNano()}
}

// of returns the plan of a file, which do fills in if there is none.
func (c *planCache) of(key planKey, do func(*plan) error) (*plan, error) {
	c.mu.Lock()
	if c.plans == nil {
		c.plans = map[planKey]*plan{}
	}
	p := c.plans[key]
	if p == nil {
		p = &plan{}
		c.plans[key] = p
	}
	c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made {
		return p, nil
	}
	if err := do(p); err != nil {
		return nil, err // others try for themselves: it may be that only this one was told to end
	}
	p.made = true
	return p, nil
}

// close closes the files.
func (c *planCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.plans {
		if p.made {
			p.object.Close()
		}
	}
	c.plans = nil
}
