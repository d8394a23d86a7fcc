package reel

// GoroutineStates says what goroutines did, from what their threads did and from what the Go runtime's scheduler was seen to do with
// them. A goroutine on a thread does what that does. The runtime's functions on the thread's own stack tell that it leaves. If it did so in
// a function of the runtime's that returns when it goes on, such as gopark, it waited until then, or could have gone on, and didn't: it
// isn't told when what it waited for had come. If it left elsewhere, in the beginning of a function, it may have gone on long before its
// next event: what it did until then isn't known. Where the runtime's functions aren't recorded nothing is known, since a goroutine may leave
// a thread, and come back, without a word.
type GoroutineStates struct {
	f       *File
	known   bool
	leaves  map[uint32]bool     // functions on a thread's own stack, at whose entry the goroutine that was on it leaves
	holds   map[uint32]RunState // functions that a goroutine leaves in, and goes on in, and what it does meanwhile
	threads map[uint32]*goroutineThread
	clocks  map[goroutineKey]*goroutineClock
}

// goroutineThread is a thread on which goroutines run.
type goroutineThread struct {
	wholeClock
	has   bool            // states of it are known
	owner *goroutineClock // the goroutine that is on it, nil if it isn't known to be any
	last  *goroutineClock // whose events came last
}

// goroutineClock is the StateClock of a goroutine.
type goroutineClock struct {
	on          *goroutineThread // nil while it is on none
	away        RunState         // what it does then
	inner       uint32           // its innermost open call's function
	first, now  uint64
	sum, thread StateTimes // its own at now, and the thread's
}

// leaves says of a function of the Go runtime on a thread's own stack whether the goroutine that was on it leaves.
func leaves(name string) bool {
	switch name {
	case "runtime.park_m", "runtime.goschedImpl", "runtime.gosched_m", "runtime.gopreempt_m", "runtime.goyield_m", "runtime.goschedguarded_m",
		"runtime.preemptPark", "runtime.exitsyscall0", "runtime.exitsyscallNoP", "runtime.goexit0", "runtime.schedule":
		return true
	}
	return false
}

// holds says of a function of the runtime on a goroutine's stack what that does while it has left its thread in there.
func holds(name string) (RunState, bool) {
	switch name {
	case "runtime.gopark":
		return StateBlocked, true
	case "runtime.asyncPreempt2", "runtime.Gosched", "runtime.goyield", "runtime.goschedguarded", "runtime.exitsyscall":
		return StateReady, true
	}
	return StateUnknown, false
}

// GoroutineStates returns what says of calls of goroutines what those did meanwhile; nil if no states are known.
func (f *File) GoroutineStates() (g *GoroutineStates) {
	if !f.HasStates() {
		return nil
	}
	g = &GoroutineStates{f: f, leaves: map[uint32]bool{}, holds: map[uint32]RunState{}, threads: map[uint32]*goroutineThread{}, clocks: map[goroutineKey]*goroutineClock{}}
	seen := map[string]bool{}
	for id, fn := range f.Functions {
		if fn.Tier == TierNone {
			continue
		}
		if leaves(fn.Name) {
			g.leaves[id], seen[fn.Name] = true, true
		} else if s, ok := holds(fn.Name); ok {
			g.holds[id] = s
		}
	}
	g.known = seen["runtime.park_m"] && seen["runtime.goschedImpl"] && seen["runtime.schedule"]
	return g
}

// Known says whether anything is known of goroutines: whether the runtime's functions are recorded that tell when they leave a thread.
func (g *GoroutineStates) Known() bool { return g.known }

// Push has the Pairer take events as ReadGoroutines gives them, and say of calls what the goroutine did. All events of the reel have to come
// by, in that order.
func (g *GoroutineStates) Push(p *Pairer, goroutine uint64, thread uint32, events []Event, lost bool) {
	if len(events) == 0 {
		return
	}
	t, key := g.thread(thread), goroutineKey{id: goroutine}
	if goroutine == 0 {
		key.thread = thread
	}
	at := events[0].Time
	c := g.clocks[key]
	if c == nil {
		c = &goroutineClock{first: at, now: at}
		g.clocks[key] = c
	}
	if lost {
		t.leave(StateUnknown, 0)
		t.last = nil
	}
	if goroutine != 0 && t.owner != c {
		t.leave(StateUnknown, 0)
		if c.on != nil && c.on.owner == c {
			c.on.leave(StateUnknown, 0)
		}
		t.owner = c
	}
	if c.on != t || goroutine == 0 && t.last != c {
		if goroutine == 0 {
			c.away = StateUnknown
		}
		c.come(t, at, g.known)
		p.spent.until = 0
	}
	if p.states != StateClock(c) {
		p.SetStates(c)
	}
	if goroutine == 0 {
		g.scan(t, events)
	}
	p.Push(events)
	c.At(p.now)
	t.last, c.inner = c, p.innermost()
}

// Forget forgets a goroutine that has ended.
func (g *GoroutineStates) Forget(goroutine uint64) {
	key := goroutineKey{id: goroutine}
	c := g.clocks[key]
	if c == nil {
		return
	}
	if c.on != nil && c.on.owner == c {
		c.on.owner = nil
	}
	delete(g.clocks, key)
}

func (g *GoroutineStates) thread(key uint32) *goroutineThread {
	t := g.threads[key]
	if t == nil {
		t = &goroutineThread{}
		g.f.readWhole(&t.wholeClock, key)
		i := g.f.byKey[key]
		t.has = len(g.f.threads[i].states) > 0
		g.threads[key] = t
	}
	return t
}

// scan looks for functions on the thread's own stack at whose entry the goroutine leaves.
func (g *GoroutineStates) scan(t *goroutineThread, events []Event) {
	if t.owner == nil {
		return
	}
	for i := range events {
		e := &events[i]
		if e.IsExit() {
			continue
		}
		if g.leaves[e.ID()] {
			t.leave(g.holds[t.owner.inner], e.Time)
			return
		}
	}
}

// leave has the goroutine that is on the thread leave it at the tick; with 0 it isn't known when it has.
func (t *goroutineThread) leave(to RunState, at uint64) {
	c := t.owner
	if c == nil {
		return
	}
	if at > 0 {
		c.At(at)
	}
	c.on, c.away, t.owner = nil, to, nil
}

// come has it be on the thread from the tick on, and do what it did until then.
func (c *goroutineClock) come(t *goroutineThread, at uint64, known bool) {
	c.on = nil
	c.At(at)
	c.away = StateUnknown
	if known && t.has {
		c.on = t
		c.thread = t.At(at)
	}
}

// At implements StateClock.
func (c *goroutineClock) At(tick uint64) StateTimes {
	if tick <= c.now {
		return c.sum
	}
	if c.on != nil {
		t := c.on.At(tick)
		c.sum = c.sum.Plus(t.Minus(c.thread))
		c.thread = t
	} else {
		c.sum.Add(c.away, tick-c.now)
	}
	c.now = tick
	return c.sum
}

// State implements StateClock.
func (c *goroutineClock) State() StateInterval {
	if c.on == nil {
		return StateInterval{From: c.now, To: c.now + 1, State: c.away, CPU: -1}
	}
	return c.on.State()
}
