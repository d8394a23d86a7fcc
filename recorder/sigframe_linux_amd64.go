package recorder

import (
	"bytes"
	"encoding/binary"

	"github.com/callreel/callreel/process"
)

// Code that a signal handler returns to: mov $15,%rax (or %eax); syscall (rt_sigreturn).
var restorers = [][]byte{
	{0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05},
	{0xB8, 0x0F, 0, 0, 0, 0x0F, 0x05},
}

// ripInFrame is where, from the start of struct rt_sigframe, the interrupted RIP stands: the return address (8), then in
// struct ucontext flags, link and stack (40) and 16 registers before it (arch/x86/include/asm/sigframe.h, uapi
// sigcontext.h).
const ripInFrame = 8 + 40 + 16*8

// interrupted is a place on a stack that holds the PC a signal handler will return to.
type interrupted struct {
	at uint64
	pc uint64
	// tid is the thread on whose stack it is.
	tid int
}

// interruptedPCs finds the frames of running signal handlers whose interrupted PC satisfies want. It looks through the
// part in use of each thread's stack for such a PC, and holds what it finds against the frame's form, so that a stale
// word on the stack doesn't count.
func interruptedPCs(s *process.Stopped, maps []process.Mapping, want func(pc uint64) bool) ([]interrupted, error) {
	p := s.Process()
	var found []interrupted
	var buf []byte
	for _, t := range s.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return nil, err
		}
		lo := regs.Rsp &^ 7
		m := mappingAt(maps, lo)
		if m == nil {
			continue
		}
		size := min(m.End-lo, 8<<20) // a stack's default limit: frames of handlers are near the top
		if uint64(cap(buf)) < size {
			buf = make([]byte, size)
		}
		buf = buf[:size]
		n, err := p.ReadAt(buf, lo)
		if err != nil && n == 0 {
			continue
		}
		for off := ripInFrame; off+8 <= n; off += 8 {
			pc := binary.LittleEndian.Uint64(buf[off:])
			if pc < 4096 || !want(pc) {
				continue
			}
			if ret := binary.LittleEndian.Uint64(buf[off-ripInFrame:]); isRestorer(p, maps, ret) {
				found = append(found, interrupted{at: lo + uint64(off), pc: pc, tid: t.TID})
			}
		}
	}
	return found, nil
}

func isRestorer(p *process.Process, maps []process.Mapping, addr uint64) bool {
	m := mappingAt(maps, addr)
	if m == nil || m.Perm&process.PermExec == 0 {
		return false
	}
	var code [9]byte
	n, _ := p.ReadAt(code[:], addr)
	for _, r := range restorers {
		if n >= len(r) && bytes.Equal(code[:len(r)], r) {
			return true
		}
	}
	return false
}

func mappingAt(maps []process.Mapping, addr uint64) *process.Mapping {
	for i := range maps {
		if maps[i].Contains(addr) {
			return &maps[i]
		}
	}
	return nil
}
