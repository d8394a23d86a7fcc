package reel

import (
	"errors"
	"math/bits"
)

// Words of the scheduler are coded by bits, a thread's one after the other:
//
//	kind     1 to 6 bits: what mostly comes next takes one
//	time     since the word before, in quanta of some 10 ns: how many bits it has against what is usual in that
//	         state, in unary, and the bits below the highest
//	CPU      of SchedIn, waker of SchedWoken: its place among the last eight, or itself
//	address  of faults: the difference to the fault before
//
// So a switch takes 2 to 3 bytes. See schedCoder for what both sides remember.

// schedQuantum is the unit of times in the file, in ticks, as a shift: the largest power of two of at most 16 ns.
func schedQuantum(ticksPerSecond uint64) uint {
	if ticksPerSecond == 0 {
		ticksPerSecond = 1e9
	}
	most := ticksPerSecond / 62_500_000
	if most < 2 {
		return 0
	}
	return uint(bits.Len64(most)) - 1
}

// recent are the last eight numbers, the latest first.
type recent [8]int32

// find is where a number is, or len(r), and puts it first.
func (r *recent) find(v int32) int {
	at := 0
	for at < len(r) && r[at] != v {
		at++
	}
	r.first(at, v)
	return at
}

// first puts the number v, which was at the place, first.
func (r *recent) first(at int, v int32) {
	if at > 0 {
		copy(r[1:], r[:min(at, len(r)-1)])
	}
	r[0] = v
}

// schedCoder is what writer and reader remember between the words on a thread.
type schedCoder struct {
	now     uint64 // quanta
	state   RunState
	usual   [5]uint32 // by state, and of faults' addresses: how many bits, in eighths
	cpus    recent
	wakers  recent
	address uint64
}

// addresses is the place in usual of differences of faults' addresses.
const addresses = 4

func newSchedCoder(now uint64, state RunState) schedCoder {
	c := schedCoder{now: now, state: state, cpus: recent{0, 1, 2, 3, 4, 5, 6, 7}, wakers: recent{WakerKernel, 0}}
	for i := range c.usual {
		c.usual[i] = 12 << 3
	}
	return c
}

// expected lists the kinds that mostly follow in each state, the first with the shortest code.
var expected = [4][]SchedKind{
	StateUnknown: {SchedIn, SchedBlocked},
	StateRunning: {SchedBlocked, SchedPreempted, SchedMinorFault, SchedUninterruptible},
	StateReady:   {SchedIn},
	StateBlocked: {SchedWoken, SchedIn},
}

const schedKindBits = 4

// after is the state behind a word.
func (k SchedKind) after(s RunState) RunState {
	switch k {
	case SchedIn:
		return StateRunning
	case SchedPreempted:
		return StateReady
	case SchedBlocked, SchedUninterruptible:
		return StateBlocked
	case SchedWoken:
		if s == StateRunning { // it was about to wait, and needn't
			return s
		}
		return StateReady
	case SchedLost, SchedEnded:
		return StateUnknown
	}
	return s
}

// put writes a number of a kind that mostly takes as many bits as the last ones.
func (c *schedCoder) put(w *bitWriter, of int, v uint64) {
	n := bits.Len64(v)
	w.unary(uint(zigzag(uint64(n - int(c.usual[of]+4)>>3))))
	if n > 1 {
		w.wide(v, uint(n-1))
	}
	c.learn(of, n)
}

func (c *schedCoder) take(r *bitReader, of int) uint64 {
	n := int(unzigzag(uint64(r.unary(2*64)))) + int(c.usual[of]+4)>>3
	if n < 0 || n > 64 {
		r.failed = true
		return 0
	}
	c.learn(of, n)
	if n < 2 {
		return uint64(n)
	}
	return 1<<(n-1) | r.wide(uint(n-1))
}

// learn moves what is usual a quarter of the way.
func (c *schedCoder) learn(of, n int) {
	u := int32(c.usual[of])
	c.usual[of] = uint32(u + (int32(n<<3)-u+2)>>2)
}

// append writes a word. Time that goes back counts as none.
func (c *schedCoder) append(w *bitWriter, e *SchedEvent, shift uint) {
	likely := expected[c.state]
	at := 0
	for at < len(likely) && likely[at] != e.Kind {
		at++
	}
	if at < len(likely) {
		w.unary(uint(at))
	} else {
		w.put(0, uint(at))
		w.put(uint64(e.Kind), schedKindBits)
	}
	at64 := max(e.Time>>shift, c.now)
	c.put(w, int(c.state), at64-c.now)
	c.now = at64
	switch e.Kind {
	case SchedIn:
		c.cpus.append(w, e.CPU)
	case SchedWoken:
		c.wakers.append(w, e.Waker)
	case SchedMinorFault, SchedMajorFault:
		c.put(w, addresses, zigzag(e.Address-c.address))
		c.address = e.Address
	}
	c.state = e.Kind.after(c.state)
}

func (r *recent) append(w *bitWriter, v int32) {
	at := r.find(v)
	w.gamma(uint64(at) + 1)
	if at == len(r) {
		w.put(uint64(uint32(v)), 32)
	}
}

func (r *recent) take(b *bitReader) int32 {
	at := b.gamma() - 1
	var v int32
	switch {
	case at < uint64(len(r)):
		v = r[at]
	case at == uint64(len(r)):
		v = int32(uint32(b.take(32)))
	default:
		b.failed = true
	}
	r.first(int(min(at, uint64(len(r)))), v)
	return v
}

var errSchedCode = errors.New("a word of the scheduler is cut off or impossible")

// next reads a word.
func (c *schedCoder) next(r *bitReader, e *SchedEvent, shift uint) error {
	likely := expected[c.state]
	at := 0
	for at < len(likely) && r.take(1) == 0 {
		at++
	}
	if at < len(likely) {
		e.Kind = likely[at]
	} else {
		e.Kind = SchedKind(r.take(schedKindBits))
	}
	if e.Kind == 0 || e.Kind > lastSchedKind {
		return errSchedCode
	}
	d := c.take(r, int(c.state))
	if c.now+d < c.now || c.now+d > 1<<(64-shift)-1 {
		return errSchedCode
	}
	c.now += d
	e.Time, e.CPU, e.Waker, e.Address = c.now<<shift, -1, 0, 0
	switch e.Kind {
	case SchedIn:
		e.CPU = c.cpus.take(r)
	case SchedWoken:
		e.Waker = c.wakers.take(r)
	case SchedMinorFault, SchedMajorFault:
		c.address += unzigzag(c.take(r, addresses))
		e.Address = c.address
	}
	if r.failed {
		return errSchedCode
	}
	c.state = e.Kind.after(c.state)
	return nil
}
