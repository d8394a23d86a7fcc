package timeline

import (
	"github.com/callreel/callreel/reel"
)

type Visitor struct {
	Enter func(lane uint32, c *reel.Call)
	Leave func(lane uint32, c *reel.Call) bool
}

func (t *Timeline) Tick(ns uint64) uint64 {
	return t.live.Load().clock.toTicks(ns) + t.live.Load().clock.first
}
func (t *Timeline) NS(tick uint64) uint64 { c := t.live.Load().clock; return c.toNS(c.rel(tick)) }
func (t *Timeline) Row(lane uint32, stack, depth int) int {
	l := t.live.Load().lanes[lane]
	for i := range min(stack, len(l.stacks)) {
		depth += len(l.stacks[i])
	}
	return depth
}
