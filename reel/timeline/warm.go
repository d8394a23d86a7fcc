package timeline

import (
	"cmp"
	"context"
	"slices"
)

// Warm makes finer summaries of all segments, of the busiest lanes first, until
// three quarters of the cache are full of them: later views then need not. It is
// to be run once, in the background, and uses one processor.
func (t *Timeline) Warm(ctx context.Context) error {
	s := t.live.Load()
	lanes := slices.Clone(s.lanes)
	slices.SortStableFunc(lanes, func(a, b *lane) int { return cmp.Compare(b.Calls, a.Calls) })
	for _, l := range lanes {
		for i := range l.segments {
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.cache.filled() > 0.75 {
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
