package process

import (
	"encoding/binary"
	"fmt"
)

// sleepCalls are by their numbers (arch/x86/entry/syscalls/syscall_64.tbl).
func (host) sleepCalls() []sleepCall {
	return []sleepCall{
		{number: 270, timeArg: 4},                                                  // pselect6(0, 0, 0, 0, ts, 0)
		{number: 271, timeArg: 2, args: [6]uint64{4: 8}},                           // ppoll(0, 0, ts, 0, 8)
		{number: 230, timeArg: 2, args: [6]uint64{0: 1}},                           // clock_nanosleep(CLOCK_MONOTONIC, 0, ts, 0)
		{number: 35, timeArg: 0},                                                   // nanosleep(ts, 0)
		{number: 7, timeArg: -1, args: [6]uint64{2: sleepNanoseconds / 1_000_000}}, // poll(0, 0, ms)
	}
}

// A chainLayout is where the parts of a chain lie, from high to low.
type chainLayout struct {
	vector, cells, timespec, base, end uint64
	data                               []uint64
}

func (p *framePlan) layout() (chainLayout, error) {
	const most = 128 << 10
	if p.stack < most || p.stack >= 1<<63 {
		return chainLayout{}, fmt.Errorf("%w: stack pointer %#x", ErrNoSafeThread, p.stack)
	}
	l := chainLayout{end: p.stack - arch.redZone(), data: make([]uint64, len(p.calls))}
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

// A framePlan is a chainPlan in the words of signal frames.
type framePlan struct {
	chainPlan
	own    frameState // the thread's own registers and mask
	vector []byte     // frameXState
}

// chain lays a chain out.
func (host) chain(p chainPlan) (*chain, error) {
	vector, err := frameXState(p.vector)
	if err != nil {
		return nil, err
	}
	return (&framePlan{p, frameOf(&p.rest, p.mask), vector}).build()
}

func (p *framePlan) build() (*chain, error) {
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
	own := p.own
	own.vector = l.vector
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
			links = own.append(links)
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
		start: states[0].over(p.rest), bytes: out, cookie: p.cookie,
	}, nil
}

// linkSize returns the bytes of the i-th link; the last one is the sleep's.
func (p *framePlan) linkSize(i int) int {
	size := 8*len(p.gadgets.sigreturn()) + ucSize
	if i < len(p.calls) {
		words, tail := p.gadgets.result(0)
		size += 8*len(words) + tail.pop
	}
	return size
}

// link returns the registers with which a thread makes one call of the chain.
func (p *framePlan) link(c Call) frameState {
	f := frameState{cs: p.own.cs, ss: p.own.ss, eflags: 0x202, rip: p.gadgets.syscall, mask: allBlocks}
	f.setCall(c)
	f.r12, f.r13, f.r14, f.r15 = p.cookie, p.cookie, p.cookie, p.cookie
	return f
}

// frameOf is what rt_sigreturn is to restore.
func frameOf(r *Regs, mask uint64) frameState {
	return frameState{
		r8: r.R8, r9: r.R9, r10: r.R10, r11: r.R11, r12: r.R12, r13: r.R13, r14: r.R14, r15: r.R15,
		rdi: r.Rdi, rsi: r.Rsi, rbp: r.Rbp, rbx: r.Rbx, rdx: r.Rdx, rax: r.Rax, rcx: r.Rcx,
		rsp: r.Rsp, rip: r.Rip, eflags: r.Eflags, cs: uint16(r.Cs), ss: uint16(r.Ss), mask: mask,
	}
}

// over is a thread's registers with those of the frame in them.
func (f *frameState) over(r Regs) Regs {
	r.R8, r.R9, r.R10, r.R11 = f.r8, f.r9, f.r10, f.r11
	r.R12, r.R13, r.R14, r.R15 = f.r12, f.r13, f.r14, f.r15
	r.Rdi, r.Rsi, r.Rbp, r.Rbx = f.rdi, f.rsi, f.rbp, f.rbx
	r.Rdx, r.Rax, r.Rcx = f.rdx, f.rax, f.rcx
	r.Rsp, r.Rip, r.Eflags = f.rsp, f.rip, f.eflags
	r.LeaveSyscall() // nothing to be restarted
	return r
}
