package mapped

import (
	"os"
	"slices"
	"sync"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// PlanCache keeps the plans of files, for the programs of a tree: most share their libraries, and many are started again and
// again. Of those that no program uses now it keeps some, since there may be ever new ones.
type PlanCache struct {
	mu     sync.Mutex // guards what follows, and what plans say of their use
	plans  map[planKey]*sharedPlan
	unused []*sharedPlan // least lately used first
	idle   int           // functions of those
}

// What is kept of plans that no program uses.
const (
	maxUnused = 256
	maxIdle   = 1 << 19 // functions, of some hundred bytes each
)

// planKey names a file as it is.
type planKey struct {
	dev, inode  uint64
	size, mtime int64
}

// sharedPlan is a file's; once it is made it isn't changed any more.
type sharedPlan struct {
	mu     sync.Mutex // guards made, object, probe and plan until they are made
	made   bool
	object *object.Image
	probe  *plan.Image
	plan   []plan.Function
	notes  []sdt.Note

	key  planKey
	uses int
}

func keyOf(m process.Mapping, fi os.FileInfo) planKey {
	return planKey{m.Dev, m.Inode, fi.Size(), fi.ModTime().UnixNano()}
}

// of returns the plan of a file, which do fills in if there is none. The caller is to release it.
func (c *PlanCache) of(key planKey, do func(*sharedPlan) error) (*sharedPlan, error) {
	c.mu.Lock()
	if c.plans == nil {
		c.plans = map[planKey]*sharedPlan{}
	}
	p := c.plans[key]
	if p == nil {
		p = &sharedPlan{key: key}
		c.plans[key] = p
	}
	if i := slices.Index(c.unused, p); i >= 0 {
		c.unused = slices.Delete(c.unused, i, i+1)
		c.idle -= len(p.plan)
	}
	p.uses++
	c.mu.Unlock()
	if err := p.make(do); err != nil {
		c.release(p)
		return nil, err // others try for themselves: it may be that only this one was told to end
	}
	return p, nil
}

func (p *sharedPlan) make(do func(*sharedPlan) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made {
		return nil
	}
	err := do(p)
	p.made = err == nil
	return err
}

// release says that a plan is used no more by somebody.
func (c *PlanCache) release(p *sharedPlan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.uses--; p.uses > 0 || c.plans[p.key] != p {
		return
	}
	if !p.made { // nobody is at it
		delete(c.plans, p.key)
		return
	}
	c.unused = append(c.unused, p)
	c.idle += len(p.plan)
	for len(c.unused) > maxUnused || c.idle > maxIdle && len(c.unused) > 1 {
		old := c.unused[0]
		c.unused = slices.Delete(c.unused, 0, 1)
		c.idle -= len(old.plan)
		delete(c.plans, old.key)
		old.object.Close()
	}
}

// Close closes the files.
func (c *PlanCache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.plans {
		if p.made {
			p.object.Close()
		}
	}
	c.plans, c.unused, c.idle = nil, nil, 0
}
