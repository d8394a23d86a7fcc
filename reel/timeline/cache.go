package timeline

import (
	"container/list"
	"sync"
)

// defaultCache is how many bytes decoded calls may take: those of about 16 M
// events.
const defaultCache = 256 << 20

// cache keeps what was decoded last, up to a number of bytes.
type cache struct {
	mu      sync.Mutex
	limit   int64
	bytes   int64
	entries map[uint64]*list.Element
	order   *list.List // of *cached, the last used first
}

type cached struct {
	key   uint64
	ready chan struct{} // closed when value is there
	value any
	bytes int64
}

func newCache(limit int64) *cache {
	if limit <= 0 {
		limit = defaultCache
	}
	return &cache{limit: limit, entries: map[uint64]*list.Element{}, order: list.New()}
}

// peek returns the value if it is there.
func (c *cache) peek(key uint64) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).value // nil while it is being made
}

// get returns the value for the key, which make makes if it isn't there: once,
// whoever asks meanwhile waits.
func (c *cache) get(key uint64, make func() (value any, bytes int64)) any {
	c.mu.Lock()
	if e, ok := c.entries[key]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		x := e.Value.(*cached)
		<-x.ready
		return x.value
	}
	x := &cached{key: key, ready: newReady()}
	c.entries[key] = c.order.PushFront(x)
	c.mu.Unlock()

	value, bytes := make()

	c.mu.Lock()
	defer c.mu.Unlock()
	x.value, x.bytes = value, bytes
	close(x.ready)
	c.shrink(x)
	return value
}

// put keeps a value in place of another.
func (c *cache) put(key uint64, value any, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		old := e.Value.(*cached)
		c.bytes -= old.bytes
		delete(c.entries, key)
		c.order.Remove(e)
	}
	x := &cached{key: key, ready: make(chan struct{}), value: value, bytes: bytes}
	close(x.ready)
	c.entries[key] = c.order.PushFront(x)
	c.shrink(x)
}

// shrink counts what is new, and lets go of what was used longest ago.
func (c *cache) shrink(x *cached) {
	c.bytes += x.bytes
	for e := c.order.Back(); e != nil && c.bytes > c.limit; {
		old, before := e.Value.(*cached), e.Prev()
		if old != x && old.bytes > 0 {
			c.bytes -= old.bytes
			delete(c.entries, old.key)
			c.order.Remove(e)
		}
		e = before
	}
}

func newReady() chan struct{} { return make(chan struct{}) }
