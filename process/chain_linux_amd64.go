package process

import (
	"encoding/binary"
	"fmt"
)

// A chain is a piece of stack that makes a thread perform system calls and then
// restore itself, with no help from outside:
//
//	syscall; ret        the first call, from the start registers
//	→ store             rax to the call's cell
//	→ sigreturn         a restorer's code: the next frame's registers
//	   syscall; ret     the next call …
//	   …
//	   syscall; ret     a short sleep, in which the tracer stops the thread
//	→ sigreturn         the thread's own registers, vector state and mask
//
// The tracer takes the results from the cells, stops the thread in its sleep
// and restores it directly. If the tracer is gone, the sleep ends and the last
// frame does the same. Everything lies below the red zone of the interrupted
// code (System V AMD64 ABI §3.2.2) and above the stack pointer of every link.
type chain struct {
	base   uint64     // lowest address, the first stack pointer
	end    uint64     // above the highest address
	cells  uint64     // one 8-byte cell a call, in order
	data   []uint64   // addresses of the calls' data, 0 where there is none
	start  frameState // the registers to begin with; its mask is meant for all links
	bytes  []byte     // what to write at base
	cookie uint64     // in the cookie register while the thread is in the chain
}

// A chainPlan is what a chain is made from.
type chainPlan struct {
	stack   uint64     // the thread's own stack pointer
	calls   []Call     //
	rest    frameState // the thread's own registers and mask; vector is filled in
	vector  []byte     // frameXState
	sleep   sleepCall
	cookie  uint64
	gadgets *gadgets
}

const (
	redZone   = 128
	allBlocks = ^uint64(0) // the kernel leaves SIGKILL and SIGSTOP out
	// cellEmpty is what a cell holds until the result is there. It is neither an
	// address nor an error number.
	cellEmpty = 0x8000_5ca1_ab1e_0000
	// sleepNanoseconds is how long the tracer has to stop the thread, and how
	// long a thread whose tracer died stays away. On a busy machine the tracer
	// may not get to run for some hundred milliseconds.
	sleepNanoseconds = 500_000_000
)

// A sleepCall is a way to sleep. Filters may forbid some.
type sleepCall struct {
	number  uintptr
	timeArg int       // which argument is the address of a timespec, -1 if none
	args    [6]uint64 // the others
}

var sleepCalls = []sleepCall{
	{number: 270, timeArg: 4},                                                  // pselect6(0, 0, 0, 0, ts, 0)
	{number: 271, timeArg: 2, args: [6]uint64{4: 8}},                           // ppoll(0, 0, ts, 0, 8)
	{number: 230, timeArg: 2, args: [6]uint64{0: 1}},                           // clock_nanosleep(CLOCK_MONOTONIC, 0, ts, 0)
	{number: 35, timeArg: 0},                                                   // nanosleep(ts, 0)
	{number: 7, timeArg: -1, args: [6]uint64{2: sleepNanoseconds / 1_000_000}}, // poll(0, 0, ms)
}

func (c sleepCall) call(ts uint64) Call {
	out := Call{Number: c.number, Args: c.args}
	if c.timeArg >= 0 {
		out.Args[c.timeArg] = ts
	}
	return out
}

// A chainLayout is where the parts of a chain lie, from high to low.
type chainLayout struct {
	vector, cells, timespec, base, end uint64
	data                               []uint64
}

func (p *chainPlan) layout() (chainLayout, error) {
	const most = 128 << 10
	if p.stack < most || p.stack >= 1<<63 {
		return chainLayout{}, fmt.Errorf("%w: stack pointer %#x", ErrNoSafeThread, p.stack)
	}
	l := chainLayout{end: p.stack - redZone, data: make([]uint64, len(p.calls))}
	l.vector = (l.end - uint64(len(p.vector))) &^ (xstateAlign - 1)
	l.cells = l.vector - 8*uint64(len(p.calls))
	l.timespec = l.cells - 16
	at := l.timespec
	for i, c := range p.calls {
		if len(c.Data) > 0 {
			at = (at - uint64(len(c.Data))) &^ 15
			l.data[i] = at
		}
	}
	links := 0
	for i := range len(p.calls) + 1 {
		links += p.linkSize(i)
	}
	l.base = (at - uint64(links)) &^ 15
	return l, nil
}

// build lays the chain out.
func (p *chainPlan) build() (*chain, error) {
	l, err := p.layout()
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	links := make([]byte, 0, l.end-l.base)
	sleep := p.sleep.call(l.timespec)
	states := make([]frameState, 0, len(p.calls)+1)
	for i, c := range p.calls {
		if l.data[i] != 0 {
			c.Args[c.DataArg] = l.data[i]
		}
		f := p.link(c)
		cell := l.cells + 8*uint64(i)
		_, tail := p.gadgets.result(cell)
		f.setBase(tail.base, cell-uint64(int64(tail.disp)))
		states = append(states, f)
	}
	states = append(states, p.link(sleep))

	// Each state's stack pointer is where its links begin.
	at := l.base
	for i := range states {
		states[i].rsp = at
		at += uint64(p.linkSize(i))
	}
	rest := p.rest
	rest.vector = l.vector
	for i := range states {
		if i < len(p.calls) {
			words, tail := p.gadgets.result(l.cells + 8*uint64(i))
			for range tail.pop / 8 {
				words = append(words, p.cookie)
			}
			for _, word := range words {
				links = le.AppendUint64(links, word)
			}
		}
		for _, word := range p.gadgets.sigreturn() {
			links = le.AppendUint64(links, word)
		}
		if i+1 < len(states) {
			links = states[i+1].append(links)
		} else {
			links = rest.append(links)
		}
	}
	out := make([]byte, l.end-l.base)
	copy(out, links)
	for i, c := range p.calls {
		if l.data[i] != 0 {
			copy(out[l.data[i]-l.base:], c.Data)
		}
		le.PutUint64(out[l.cells-l.base+8*uint64(i):], cellEmpty)
	}
	le.PutUint64(out[l.timespec+8-l.base:], sleepNanoseconds)
	copy(out[l.vector-l.base:], p.vector)
	return &chain{
		base: l.base, end: l.end, cells: l.cells, data: l.data,
		start: states[0], bytes: out, cookie: p.cookie,
	}, nil
}

// linkSize returns the bytes of the i-th link; the last one is the sleep's.
func (p *chainPlan) linkSize(i int) int {
	size := 8*len(p.gadgets.sigreturn()) + ucSize
	if i < len(p.calls) {
		words, tail := p.gadgets.result(0)
		size += 8*len(words) + tail.pop
	}
	return size
}

// link returns the registers with which a thread makes one call of the chain.
func (p *chainPlan) link(c Call) frameState {
	f := frameState{cs: p.rest.cs, ss: p.rest.ss, eflags: 0x202, rip: p.gadgets.syscall, mask: allBlocks}
	f.setCall(c)
	f.r12, f.r13, f.r14, f.r15 = p.cookie, p.cookie, p.cookie, p.cookie
	return f
}
