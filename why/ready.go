package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/reel"
)

// maxAside is how many threads are asked whether they ran instead.
const maxAside = 512

// ranInstead says what ran on the processors that a thread waited for.
func (x *explainer) ranInstead(a *aligned, c *Cause, marks []bool) {
	spans, _ := a.spansOf(marks, reel.StateReady)
	if len(spans) == 0 {
		return
	}
	c.FromNS, c.ToNS = x.since(spans[0].From), x.since(spans[0].To)
	if a.slow.goroutine != 0 && !x.threadReady(&spans[0]) {
		c.waits = "; Go's scheduler had other goroutines, or the runtime's own work, on its processors"
		return
	}
	whole := length(spans)
	ours, anywhere := map[string]uint64{}, uint64(0)
	threads := x.f.Threads()
	for i := range spans {
		s := &spans[i]
		cpu := x.nextCPU(s)
		for k := range threads[:min(len(threads), maxAside)] {
			t := &threads[k]
			if t.Key == s.thread {
				continue
			}
			r := x.f.States(t.Key)
			r.Seek(s.From)
			for iv, ok := r.Next(); ok && iv.From < s.To; iv, ok = r.Next() {
				if iv.State != reel.StateRunning {
					continue
				}
				n := min(iv.To, s.To) - min(max(iv.From, s.From), s.To)
				anywhere += n
				if iv.CPU == cpu && cpu >= 0 {
					ours[roleOf(t.Name)] += n
				}
			}
		}
	}
	type one struct {
		role string
		n    uint64
	}
	var list []one
	known := uint64(0)
	for role, n := range ours {
		known += n
		if n*10 >= whole {
			list = append(list, one{role, n})
		}
	}
	slices.SortFunc(list, func(a, b one) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.role, b.role)) })
	var parts []string
	for _, o := range list[:min(len(list), 3)] {
		parts = append(parts, fmt.Sprintf("threads %q of this reel for %s", o.role, took(x.ns(o.n))))
	}
	if rest := whole - min(whole, known); rest*10 >= whole {
		parts = append(parts, "other processes, which the reel doesn't have, for "+took(x.ns(rest)))
	}
	switch longest := spans[0].To - spans[0].From; {
	case anywhere*50 < whole && x.ns(longest) >= 8e6 && len(threads) > 1:
		c.waits = "; no recorded thread ran on any CPU meanwhile: other processes had them, or a quota was used up (cpu.max of the cgroup)"
	case len(parts) > 0:
		c.waits = "; the CPU had " + strings.Join(parts, ", ")
	}
}

// threadReady says whether the thread of a stretch was ready, too, in the midst of it. A goroutine that is on no thread waits for others.
func (x *explainer) threadReady(s *stretch) bool {
	r := x.f.States(s.thread)
	at := s.From + (s.To-s.From)/2
	r.Seek(at)
	iv, ok := r.Next()
	return ok && iv.From <= at && iv.State == reel.StateReady
}

// nextCPU is the processor that a thread ran on when it had waited for one, -1 if that isn't known.
func (x *explainer) nextCPU(s *stretch) int32 {
	r := x.f.States(s.thread)
	r.Seek(s.To)
	if iv, ok := r.Next(); ok && iv.State == reel.StateRunning {
		return iv.CPU
	}
	return -1
}

// faults tells of page faults, where there are far more than usual.
func (x *explainer) faults(a *aligned, c *Cause, marks []bool) {
	minor, major := a.slow.faultsIn(marks)
	var usual []uint64
	for i := range a.peers {
		m, j := a.peers[i].faultsIn(marks)
		usual = append(usual, m+j)
	}
	if len(usual) == 0 || minor+major == 0 {
		return
	}
	slices.Sort(usual)
	if often := rank(usual, 0.8); minor+major < 16+4*often && major == 0 {
		return
	}
	text := fmt.Sprintf("%s instead of %s", many(minor+major, "page fault"), number(rank(usual, 0.5)))
	if major > 0 {
		text += fmt.Sprintf(", %s of which read from a disk", number(major))
	}
	c.faults = text
}

func (p *placed) faultsIn(marks []bool) (minor, major uint64) {
	for i := range p.nodes {
		if at := p.of[i]; at >= 0 && marks[at] {
			minor += p.nodes[i].minor
			major += p.nodes[i].major
		}
	}
	return minor, major
}
