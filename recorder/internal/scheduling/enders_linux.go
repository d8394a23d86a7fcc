package scheduling

import (
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
)

// What is remembered of calls that may have let others go on is bounded: the target decides how many it makes. What is forgotten isn't found.
const (
	maxEnders      = 1 << 15 // of a process, and again as many on descriptors
	maxOfAddress   = 1 << 13 // of these, on one address
	maxCalls       = 1 << 8  // of a thread, that it may have waited in
	maxProcesses   = 1 << 8  // have any
	linksAtOnce    = 128     // in a round
	watchedAtOnce  = 16      // descriptors that an epoll instance watches
	unlockedWithin = 20_000  // nanoseconds of the beginning of a wait for a condition in which the mutex is unlocked
)

// waitCall is a call that a thread may have waited in.
type waitCall struct {
	waitcalls.Kept
	object string
	// watched is, of epoll, what is watched.
	watched []watched
}

type watched struct {
	fd     uint64
	object string
}

// ender is a call that may have let another thread go on.
type ender struct {
	k          *life
	start, end uint64
	fd         uint64
	object     string
	out        bool
}

// enders are those of a process: by the address that they are about, and on descriptors, in the order in which it was learned of them.
type enders struct {
	byAddress   map[uint64][]ender
	count       int
	descriptors []ender
	disorder    uint64 // ticks
}

// joining finds out what threads waited for, and who let them go on, by calls that took long.
type joining struct {
	watch  *Watch
	enders map[int]*enders
	links  int // descriptors that may still be looked up in this round
}

func (w *Watch) newJoining() joining {
	return joining{watch: w, enders: map[int]*enders{}, links: linksAtOnce}
}

// Kept takes calls of the thread that took long, behind their events.
func (t *Thread) Kept(calls []waitcalls.Kept) error {
	r, k := t.r, t.k
	if k == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range calls {
		k.part.calls = r.join.took(k, &calls[i], k.part.calls)
	}
	return nil
}

// took takes one, and adds it to those of the thread that it may have waited in. The caller holds mu.
func (j *joining) took(k *life, c *waitcalls.Kept, calls []waitCall) []waitCall {
	object := j.object(k, c)
	j.ends(k, c, object)
	if !j.mayWait(c) {
		return calls
	}
	if len(calls) >= maxCalls {
		calls = slices.Delete(calls, 0, maxCalls/2)
	}
	return append(calls, j.waitIn(k, c, object))
}

// mayWait says whether a thread may have waited in a call for so long that it is worth noting.
func (j *joining) mayWait(c *waitcalls.Kept) bool {
	return c.Waits && c.End-c.Start >= j.watch.leastWait
}

// object is what a call's descriptor stands for, "" if it isn't about one or that isn't known.
func (j *joining) object(k *life, c *waitcalls.Kept) string {
	if !c.Descriptor {
		return ""
	}
	return j.link(k.pid, uint64(uint32(c.Args[0])), j.mayWait(c))
}

func (j *joining) waitIn(k *life, c *waitcalls.Kept, object string) waitCall {
	x := waitCall{Kept: *c, object: object}
	if object == "anon_inode:[eventpoll]" {
		x.watched = j.watchedBy(k.pid, uint64(uint32(c.Args[0])))
	}
	return x
}

// ends adds a call to those that may have let other threads go on. They come in the order of their ends, but for the disorder.
func (j *joining) ends(k *life, c *waitcalls.Kept, object string) {
	of := j.enders[k.pid]
	if of == nil {
		if len(j.enders) >= maxProcesses {
			return
		}
		of = &enders{byAddress: map[uint64][]ender{}, disorder: j.watch.ticks(settleTime)}
		j.enders[k.pid] = of
	}
	e := ender{k: k, start: c.Start, end: c.End, object: object, out: c.Out}
	if c.Descriptor {
		e.fd = uint64(uint32(c.Args[0]))
	}
	if c.Ends {
		of.add(c, e)
	}
	if c.Second && c.Args[1] != 0 {
		e.end = min(e.end, e.start+j.watch.ticks(unlockedWithin))
		of.unlocks(c.Args[1], e)
	}
}

func (w *Watch) ticks(ns uint64) uint64 {
	return uint64(float64(ns) * float64(w.leastWait) / float64(leastWait.Nanoseconds()))
}

// link is what a descriptor stands for, as far as there is time for that in this round; surely says that it is worth it.
func (j *joining) link(pid int, fd uint64, surely bool) string {
	o := &j.watch.objects
	if _, known := o.links[descriptor{pid, int32(fd)}]; !known && !surely {
		if j.links == 0 {
			return ""
		}
		j.links--
	}
	return o.of(pid, fd)
}

// watchedBy is what an epoll instance watches, or did a moment ago, as far as there is time for that: there may be tens of descriptors to be
// read. The caller must not change it.
func (j *joining) watchedBy(pid int, fd uint64) []watched {
	d := descriptor{pid, int32(fd)}
	if w, known := j.watch.objects.watched[d]; known {
		return w.list
	}
	if j.links == 0 {
		return nil
	}
	j.links--
	began := time.Now()
	var w watching
	fds := process.Watched(pid, int(fd))
	for _, fd := range fds[:min(len(fds), watchedAtOnce)] {
		w.list = append(w.list, watched{uint64(fd), j.link(pid, uint64(fd), false)})
	}
	if j.links > 0 { // else some aren't known, which the next round may change
		now := time.Now()
		w.until = now.Add(watchedShare * now.Sub(began))
	}
	j.watch.objects.watched[d] = w
	return w.list
}

func (of *enders) add(c *waitcalls.Kept, e ender) {
	if !c.Descriptor {
		of.unlocks(c.Args[0], e)
		return
	}
	if len(of.descriptors) >= maxEnders {
		of.descriptors = slices.Delete(of.descriptors, 0, maxEnders/2)
	}
	of.descriptors = append(of.descriptors, e)
}

// unlocks adds a call that is about an address.
func (of *enders) unlocks(address uint64, e ender) {
	if of.count >= maxEnders {
		clear(of.byAddress)
		of.count = 0
	}
	list := of.byAddress[address]
	if len(list) >= maxOfAddress {
		list = slices.Delete(list, 0, maxOfAddress/2)
		of.count -= maxOfAddress / 2
	}
	of.byAddress[address] = append(list, e)
	of.count++
}

// unlocked finds the last call about an address that may have ended a thread's wait. Nil if there is none.
func (of *enders) unlocked(k *life, address, from, to uint64) *ender {
	return last(of.byAddress[address], k, from, to, of.disorder, func(*ender) bool { return true })
}

// reached finds the last call by which something has reached what a call waits for.
func (of *enders) reached(o *objects, k *life, c *waitCall, from, to uint64) *ender {
	return last(of.descriptors, k, from, to, of.disorder, func(e *ender) bool {
		if len(c.watched) == 0 {
			return c.meets(o, uint64(uint32(c.Args[0])), c.object, c.Out, e)
		}
		for _, w := range c.watched {
			if c.meets(o, w.fd, w.object, false, e) || c.meets(o, w.fd, w.object, true, e) {
				return true
			}
		}
		return false
	})
}

// meets says whether another call moves what this one waits for on a descriptor.
func (c *waitCall) meets(o *objects, fd uint64, object string, out bool, e *ender) bool {
	switch {
	case e.out == out || object == "" || e.object == "":
		return false
	case object == "anon_inode:[eventfd]":
		return e.fd == fd && e.object == object
	case out:
		return o.joined(e.object, object)
	}
	return o.joined(object, e.object)
}

// last finds the latest that overlaps a time. The list is in order but for what the rings of threads are read one after the other.
func last(list []ender, k *life, from, to, disorder uint64, fits func(*ender) bool) (best *ender) {
	for i := len(list) - 1; i >= 0; i-- {
		e := &list[i]
		if e.end+disorder < from {
			break
		}
		if e.start >= to || e.end <= from || e.k == k || best != nil && best.start >= e.start {
			continue
		}
		if fits(e) {
			best = e
		}
	}
	return best
}

// settleTime is how long it takes until all is known of a wait that has ended: the rings are read, and who has let the thread go on has had time
// to return. For sockets of which it isn't known yet what they are it takes up to socketTime. Both are in nanoseconds.
const (
	settleTime = 250_000_000
	socketTime = 1_000_000_000
)
