package reel

// switchTo makes the stack that sp belongs to the current one: of those that
// are known the nearest that fits, else an empty one, else a new one.
func (p *Pairer) switchTo(sp uint32) {
	p.clock++
	p.stacks[p.cur].left = p.clock
	best, empty := -1, -1
	nearest := ^uint32(0)
	for i := range p.stacks {
		s := &p.stacks[i]
		if s.fits(sp) {
			if d := s.distance(sp); best < 0 || d < nearest {
				best, nearest = i, d
			}
		}
		if len(s.calls) == 0 && (empty < 0 || s.left < p.stacks[empty].left) {
			empty = i
		}
	}
	switch {
	case best >= 0:
		p.cur = best
	case empty >= 0:
		p.cur = empty
		p.stacks[empty].home = sp
	case len(p.stacks) < maxStacks:
		p.stacks = append(p.stacks, callStack{home: sp})
		p.cur = len(p.stacks) - 1
	default:
		p.cur = p.oldestStack()
		s := &p.stacks[p.cur]
		for len(s.calls) > 0 {
			p.leave(s, Implicit, 0)
		}
		s.home = sp
	}
}

// oldestStack is the stack that was left the longest ago. Its calls are given
// up when there are too many stacks.
func (p *Pairer) oldestStack() int {
	oldest := 0
	for i := range p.stacks {
		if p.stacks[i].left < p.stacks[oldest].left {
			oldest = i
		}
	}
	return oldest
}
