package process

import (
	"encoding/binary"
	"fmt"
)

// A framePlan is a chainPlan in the words of signal frames. On arm64 the kernel changes no register but x0 in a system call, and returns go
// to x30, so a link is: what the store takes from the stack, with the restorer's address as x30, and the next frame. A sleep's result isn't
// kept: it returns to the restorer itself.
type framePlan struct {
	chainPlan
	own frameState // the thread's own registers, mask and vector state
}

// A chainLayout is where the parts of a chain lie, from high to low.
type chainLayout struct {
	cells, timespec, base, end uint64
	data                       []uint64
}

// chain lays a chain out.
func (host) chain(p chainPlan) (*chain, error) {
	own, err := frameOf(&p.rest, p.mask, p.vector)
	if err != nil {
		return nil, err
	}
	return (&framePlan{p, own}).build()
}

func (p *framePlan) layout() (chainLayout, error) {
	const most = 128 << 10
	if p.stack < most || p.stack >= 1<<52 {
		return chainLayout{}, fmt.Errorf("%w: stack pointer %#x", ErrNoSafeThread, p.stack)
	}
	l := chainLayout{end: (p.stack - arch.redZone()) &^ 15, data: make([]uint64, len(p.calls))}
	l.cells = l.end - 8*uint64(len(p.calls))
	l.timespec = l.cells - 16
	at := l.timespec
	for i, c := range p.calls {
		if len(c.Data) > 0 {
			at = (at - uint64(len(c.Data))) &^ 15
			l.data[i] = at
		}
	}
	links := len(p.calls)*(int(p.gadgets.tail.taken)+(&frameState{}).size()) + p.own.size()
	l.base = (at - uint64(links)) &^ 15
	return l, nil
}

func (p *framePlan) build() (*chain, error) {
	l, err := p.layout()
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	tail := p.gadgets.tail
	states := make([]frameState, 0, len(p.calls)+1)
	at := l.base // each state's stack pointer is where its link begins
	for i, c := range p.calls {
		if l.data[i] != 0 {
			c.Args[c.DataArg] = l.data[i]
		}
		f := p.link(c)
		f.x[tail.base] = l.cells + 8*uint64(i) - tail.disp
		f.x[linkRegister] = p.gadgets.store
		f.sp = at
		states = append(states, f)
		at += tail.taken + uint64(f.size())
	}
	sleep := p.link(p.sleep.call(l.timespec))
	sleep.x[linkRegister], sleep.sp = p.gadgets.restorer, at
	states = append(states, sleep)

	links := make([]byte, 0, l.end-l.base)
	for i := range p.calls {
		taken := make([]byte, tail.taken)
		for off := 0; off < len(taken); off += 8 {
			le.PutUint64(taken[off:], p.cookie)
		}
		le.PutUint64(taken[tail.linkAt:], p.gadgets.restorer)
		links = states[i+1].append(append(links, taken...))
	}
	links = p.own.append(links)

	out := make([]byte, l.end-l.base)
	copy(out, links)
	for i, c := range p.calls {
		if l.data[i] != 0 {
			copy(out[l.data[i]-l.base:], c.Data)
		}
		le.PutUint64(out[l.cells-l.base+8*uint64(i):], cellEmpty)
	}
	le.PutUint64(out[l.timespec+8-l.base:], sleepNanoseconds)
	return &chain{
		base: l.base, end: l.end, cells: l.cells, data: l.data,
		start: states[0].over(p.rest), bytes: out, cookie: p.cookie,
	}, nil
}

// link returns the registers with which a thread makes one call of the chain.
func (p *framePlan) link(c Call) frameState {
	f := frameState{pc: p.gadgets.syscall, mask: allBlocks}
	f.setCall(c)
	for r := cookieFirst; r <= cookieLast; r++ {
		f.x[r] = p.cookie
	}
	return f
}

// frameOf is what rt_sigreturn is to restore.
func frameOf(r *Regs, mask uint64, vector []byte) (frameState, error) {
	records, err := frameRecordsOf(vector)
	return frameState{x: r.Regs, sp: r.Sp, pc: r.Pc, pstate: r.Pstate, mask: mask, records: records}, err
}

// over is a thread's registers with those of the frame in them.
func (f *frameState) over(r Regs) Regs {
	r.Regs, r.Sp, r.Pc, r.Pstate = f.x, f.sp, f.pc, f.pstate
	r.LeaveSyscall() // nothing to be restarted
	return r
}

// The registers that have the cookie while a thread is in a chain: those that functions keep. One of them may be the base of a store.
const cookieFirst, cookieLast = 19, 28

// cookie returns the number that marks a thread in a chain.
func (host) cookie(r *Regs) (cookie uint64, ok bool) {
	for _, v := range r.Regs[cookieFirst : cookieFirst+2] {
		count := 0
		for _, w := range r.Regs[cookieFirst : cookieLast+1] {
			if w == v {
				count++
			}
		}
		if count >= cookieLast-cookieFirst && v>>32 == chainMark {
			return v, true
		}
	}
	return 0, false
}
