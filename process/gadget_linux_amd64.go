package process

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// gadgets are the addresses of the instructions that remote system calls use.
type gadgets struct {
	syscall      uint64
	restorer     uint64
	restorerCode []byte // what stands at restorer
	popRAX       uint64 // serves where there is no restorer
	store        uint64
	tail         store
	popRDI       uint64 // serves with rdiStore where there is no store
	rdiStore     uint64
	rdiTail      store
	laid         *laid // not nil where they are ours
}

// complete says whether nothing better is to be looked for.
func (g *gadgets) complete() bool { return g.syscall != 0 && g.restorer != 0 && g.store != 0 }

// usable says whether it will do.
func (g *gadgets) usable() bool {
	return g.syscall != 0 && g.canStore() && (g.restorer != 0 || g.popRAX != 0)
}

func (g *gadgets) canStore() bool { return g.store != 0 || g.popRDI != 0 && g.rdiStore != 0 }

// result returns the words on the stack that bring rax to the cell, and the
// store they lead to, whose base must point there unless it is rdi.
func (g *gadgets) result(cell uint64) ([]uint64, store) {
	if g.store != 0 {
		return []uint64{g.store}, g.tail
	}
	return []uint64{g.popRDI, cell - uint64(int64(g.rdiTail.disp)), g.rdiStore}, g.rdiTail
}

// sigreturn returns the words on the stack that lead to rt_sigreturn; the frame
// follows them.
func (g *gadgets) sigreturn() []uint64 {
	if g.restorer != 0 {
		return []uint64{g.restorer}
	}
	return []uint64{g.popRAX, unix.SYS_RT_SIGRETURN, g.syscall}
}

// sigreturnIP is the instruction pointer that seccomp filters see.
func (g *gadgets) sigreturnIP() uint64 {
	if g.restorer != 0 {
		return g.restorer + uint64(len(g.restorerCode))
	}
	return g.syscall + 2
}

// intact reads the instructions again: the recorder may have patched one.
func (g *gadgets) intact(p *Process) bool {
	if !g.usable() || !p.holds(g.syscall, syscallRet) {
		return false
	}
	if g.store != 0 && !p.holds(g.store, g.tail.code) ||
		g.store == 0 && !(p.holds(g.rdiStore, g.rdiTail.code) && p.holds(g.popRDI, popRDI)) {
		return false
	}
	if g.restorer != 0 {
		return p.holds(g.restorer, g.restorerCode)
	}
	return p.holds(g.popRAX, popRAX)
}

// PrepareSyscalls looks for the instructions that a remote system call needs,
// so that a later Stop need not. ErrNoGadget names what is missing, where there is no room for it either.
func (p *Process) PrepareSyscalls() error {
	_, err := p.findGadgets()
	if errors.Is(err, ErrNoGadget) {
		if _, missing := p.laidGadgets(); missing == nil {
			return nil
		}
	}
	return err
}

// findGadgets returns what is there even when something is missing.
func (p *Process) findGadgets() (*gadgets, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gadgets != nil && p.gadgets.intact(p) {
		return p.gadgets, nil
	}
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	g := &gadgets{}
	for _, m := range byPreference(maps) {
		if g.complete() {
			break
		}
		// A mapping that cannot be read merely holds nothing for us.
		_ = g.search(p, m)
	}
	if g.usable() {
		p.gadgets = g
		return g, nil
	}
	var missing []string
	if g.syscall == 0 {
		missing = append(missing, "syscall; ret")
	}
	if g.restorer == 0 && g.popRAX == 0 {
		missing = append(missing, "a signal restorer or pop %rax; ret")
	}
	if !g.canStore() {
		missing = append(missing, "mov %rax to memory; ret")
	}
	return g, fmt.Errorf("process %d: %w: %s", p.pid, ErrNoGadget, strings.Join(missing, ", "))
}

// search looks through one mapping in pieces that overlap by the longest gadget.
func (g *gadgets) search(p *Process, m Mapping) error {
	const piece, overlap = 256 << 10, 64
	buf := make([]byte, min(piece, m.Size()))
	for addr := m.Start; addr < m.End && !g.complete(); {
		part := buf[:min(uint64(len(buf)), m.End-addr)]
		if _, err := p.ReadAt(part, addr); err != nil {
			return err
		}
		g.scan(part, addr)
		if addr+uint64(len(part)) >= m.End {
			break
		}
		addr += uint64(len(part)) - overlap
	}
	return nil
}

func (g *gadgets) scan(code []byte, addr uint64) {
	find := func(at *uint64, offset int) bool {
		if *at != 0 || offset < 0 {
			return false
		}
		*at = addr + uint64(offset)
		return true
	}
	find(&g.syscall, bytes.Index(code, syscallRet))
	find(&g.popRAX, bytes.Index(code, popRAX))
	find(&g.popRDI, bytes.Index(code, popRDI))
	if i, n := scanRestorer(code); find(&g.restorer, i) {
		g.restorerCode = bytes.Clone(code[i : i+n])
	}
	if g.store == 0 {
		i, s := scanStore(code, func(r baseRegister) bool { return r != regRDI })
		if find(&g.store, i) {
			g.tail = s
		}
	}
	if g.rdiStore == 0 {
		i, s := scanStore(code, func(r baseRegister) bool { return r == regRDI })
		if find(&g.rdiStore, i) {
			g.rdiTail = s
		}
	}
}
