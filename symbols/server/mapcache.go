package server

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// mapCache keeps maps open, those that were used last, up to a size. A map is loaded once whoever asks for it meanwhile.
type mapCache struct {
	limit      int64
	missingFor time.Duration
	load       func(context.Context, string) (*openMap, error)

	ctx    context.Context // of all loads: a client that goes away doesn't end what others wait for
	cancel context.CancelFunc

	mu      sync.Mutex
	entries map[string]*list.Element // of *cacheEntry
	recent  *list.List               // the one used last first
	size    int64
}

// cacheEntry is a map, or why there is none.
type cacheEntry struct {
	id     string
	loaded chan struct{} // closed when what follows is set
	m      *openMap
	err    error
	until  time.Time     // when it is to be loaded anew; zero for never
	wait   time.Duration // until then

	users int   // under the cache's lock
	gone  bool  // from the cache: the last user closes it
	size  int64 // as it was counted
}

func newMapCache(limit int64, missingFor time.Duration, load func(context.Context, string) (*openMap, error)) *mapCache {
	ctx, cancel := context.WithCancel(context.Background())
	return &mapCache{limit: limit, missingFor: missingFor, load: load, ctx: ctx, cancel: cancel, entries: map[string]*list.Element{}, recent: list.New()}
}

// get returns the map of an ID, which stays open until release is called.
func (c *mapCache) get(ctx context.Context, id string) (m *openMap, release func(), err error) {
	e := c.entry(id)
	select {
	case <-e.loaded:
	case <-ctx.Done():
		c.release(e)
		return nil, nil, fmt.Errorf("server: %w", context.Cause(ctx))
	}
	if e.err != nil {
		c.release(e)
		return nil, nil, e.err
	}
	return e.m, sync.OnceFunc(func() { c.release(e) }), nil
}

// entry finds the entry of an ID, or begins to load it.
func (c *mapCache) entry(id string) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.missingFor
	if at := c.entries[id]; at != nil {
		e := at.Value.(*cacheEntry)
		if e.until.IsZero() || time.Now().Before(e.until) {
			c.recent.MoveToFront(at)
			e.users++
			return e
		}
		// What was missing for long will be for longer, and each look costs requests to the bucket.
		wait = min(2*e.wait, longestWait*c.missingFor)
		c.drop(at)
	}
	e := &cacheEntry{id: id, wait: wait, loaded: make(chan struct{}), users: 2} // the caller and the load
	c.entries[id] = c.recent.PushFront(e)
	go c.fill(e)
	return e
}

// longestWait is how many times missingFor it takes at most until it is looked again for what is missing.
const longestWait = 64

// fill loads a map.
func (c *mapCache) fill(e *cacheEntry) {
	m, err := c.loadSafely(e.id)
	c.mu.Lock()
	e.m, e.err = m, err
	switch {
	case err != nil:
		e.until = time.Now().Add(e.wait)
	case !m.HasDWARF(): // its debug file may come
		e.until = time.Now().Add(e.wait)
	}
	c.mu.Unlock()
	close(e.loaded)
	c.release(e)
}

// loadSafely makes a panic of one load that load's error.
func (c *mapCache) loadSafely(id string) (m *openMap, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("server: map of %s: panic: %v", id, p)
		}
	}()
	return c.load(c.ctx, id)
}

// release ends one use of an entry, and makes room.
func (c *mapCache) release(e *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if e.gone {
		c.closeUnused(e)
		return
	}
	c.measure(e)
	for at := c.recent.Back(); at != nil && (c.size > c.limit || c.recent.Len() > maxEntries); {
		before := at.Prev()
		switch old := at.Value.(*cacheEntry); {
		case old.users == 0:
			c.drop(at)
		case old.m != nil && old.m.texts.Size() > c.limit/manyTexts: // in use: its texts can go, and come again
			old.m.texts.Forget()
			c.measure(old)
		}
		at = before
	}
}

// manyTexts is the part of the limit that the texts of a map in use may have whatever the others have: answering without any would
// cost more than memory.
const manyTexts = 16

// measure counts what an entry takes, whose texts grow.
func (c *mapCache) measure(e *cacheEntry) {
	if e.m != nil {
		c.size -= e.size
		e.size = e.m.size()
		c.size += e.size
	}
}

// maxEntries bounds the IDs that are remembered, with and without a map.
const maxEntries = 1 << 16

// drop takes an entry out of the cache.
func (c *mapCache) drop(at *list.Element) {
	e := c.recent.Remove(at).(*cacheEntry)
	delete(c.entries, e.id)
	e.gone = true
	if e.m != nil {
		c.size -= e.size
	}
	c.closeUnused(e)
}

func (c *mapCache) closeUnused(e *cacheEntry) {
	if e.users == 0 && e.m != nil {
		_ = e.m.Close() // only read from
		e.m = nil
	}
}

// forget has the map of an ID loaded anew when it is asked for next.
func (c *mapCache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[id]; at != nil {
		c.drop(at)
	}
}

// memory is the size of all that is open.
func (c *mapCache) memory() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// close ends all loads and closes what nobody uses.
func (c *mapCache) close() error {
	c.cancel()
	c.mu.Lock()
	var loading []*cacheEntry
	for at := c.recent.Front(); at != nil; at = at.Next() {
		loading = append(loading, at.Value.(*cacheEntry))
	}
	c.mu.Unlock()
	for _, e := range loading {
		<-e.loaded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.recent.Len() > 0 {
		c.drop(c.recent.Front())
	}
	if c.size != 0 {
		return errors.New("server: maps are in use")
	}
	return nil
}
