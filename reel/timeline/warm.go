package timeline

import "context"

// Warm makes finer summaries of all segments, the busiest lanes first, until
// half of the cache is full of them: later views then need not. It is to be run
// once, in the background, and uses one processor.
func (t *Timeline) Warm(ctx context.Context) error {
	s := t.live.Load()
	for _, l := range s.lanes {
		for i := range l.segments {
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.cache.filled() > 0.5 {
				return nil
			}
			if seg := &l.segments[i]; seg.events > 2*smallSegment {
				s.loadFine(l, i)
			}
		}
	}
	return nil
}

// filled is the part of the cache that is taken.
func (c *cache) filled() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(c.bytes) / float64(c.limit)
}
