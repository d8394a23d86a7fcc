package process

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A detour leads a program's loader, when it is done, through a system call at which we are told,
// and then to the program's entry point.
//
// Breakpoints, of both kinds, and single steps are no means to get there: if we die the SIGTRAP
// ends the program. The loader takes the entry point's address from the auxiliary vector on the
// stack (AT_ENTRY). We let that name code which we have put behind the loader's own, into
// the rest of its last page: it sends its thread a signal that does nothing by default, but that
// tracers are told of, and jumps to the entry point. If we die, that happens unseen.
type detour struct {
	p     *Process
	code  uint64 // where the detour is
	call  uint64 // what follows its system call
	slot  uint64 // of AT_ENTRY on the stack
	entry uint64
	old   []byte // what was at code
}

// A detourCall is a detour's system call, and how we are told of it.
type detourCall struct {
	number, arg0, arg1 uint32
	request            int // by which the thread runs there
	stop               int // the signal of the stop that tells
}

// quietSignals do nothing by default. A tracer is told of them nevertheless.
var quietSignals = []unix.Signal{unix.SIGWINCH, unix.SIGURG}

// detourCall chooses a call that the thread may make: it sends a signal that is not blocked, or does
// nothing; then each system call of the loader has to be looked at.
func (t *Thread) detourCall() (detourCall, error) {
	mask, err := t.SigMask()
	if err != nil {
		return detourCall{}, err
	}
	info, err := t.Info()
	if err != nil {
		return detourCall{}, err
	}
	var calls []detourCall
	for _, sig := range quietSignals {
		if mask&(1<<(sig-1)) == 0 {
			calls = append(calls, detourCall{unix.SYS_TKILL, uint32(info.NSTID), uint32(sig), unix.PTRACE_CONT, int(sig)})
		}
	}
	const noFile = 0xffff_ffff
	calls = append(calls, detourCall{unix.SYS_CLOSE, noFile, 0, unix.PTRACE_SYSCALL, sysStop})
	for _, c := range calls {
		if allowed, err := t.SeccompAllows(uintptr(c.number), uint64(c.arg0), uint64(c.arg1)); err != nil {
			return detourCall{}, err
		} else if allowed {
			return c, nil
		}
	}
	return detourCall{}, t.seccompError(unix.SYS_CLOSE, "the way to the entry point takes it")
}

// runToEntry runs a program with a loader from its first instruction to its entry point.
func (t *Thread) runToEntry(auxv Auxv) error {
	c, err := t.detourCall()
	if err != nil {
		return err
	}
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	d, err := t.s.p.layDetour(c, regs.SP(), auxv)
	if err != nil {
		return err
	}
	// From here on the detour must stay until the program is through: the loader may know of it.
	if err := t.run(c.request, func(r report, at *Regs) bool { return r.signal == c.stop && at.PC() == d.call }); err != nil {
		return err
	}
	if err := t.settleFromTrap(); err != nil { // without the signal
		return err
	}
	if regs, err = t.Regs(); err != nil {
		return err
	}
	if regs.PC() != d.call {
		return fmt.Errorf("process %d: %w: it stands at %#x instead of on the way to its entry point", t.TID, ErrNotReady, regs.PC())
	}
	arch.leaveDetour(regs, auxv.Entry)
	regs.LeaveSyscall()
	if err := t.SetRegs(regs); err != nil {
		return err
	}
	return d.remove()
}

// layDetour makes the detour of a program whose loader has not begun; sp is its stack pointer.
func (p *Process) layDetour(c detourCall, sp uint64, auxv Auxv) (*detour, error) {
	slot, err := p.entrySlot(sp, auxv.Entry)
	if err != nil {
		return nil, err
	}
	code, after := arch.detour(c, auxv.Entry)
	at, err := p.spareCode(auxv, uint64(len(code)))
	if err != nil {
		return nil, err
	}
	d := &detour{p: p, code: at, call: at + uint64(after), slot: slot, entry: auxv.Entry, old: make([]byte, len(code))}
	if _, err := p.ReadAt(d.old, at); err != nil {
		return nil, err
	}
	if _, err := p.WriteAt(code, at); err != nil {
		return nil, err
	}
	return d, p.writeWord(slot, at)
}

// remove takes the detour out once the thread has left it.
func (d *detour) remove() error {
	err := d.p.writeWord(d.slot, d.entry)
	_, codeErr := d.p.WriteAt(d.old, d.code)
	return errors.Join(err, codeErr)
}

func (p *Process) writeWord(addr, value uint64) error {
	_, err := p.WriteAt(binary.LittleEndian.AppendUint64(nil, value), addr)
	return err
}

// maxInitialStack bounds what precedes the auxiliary vector on a new program's stack: pointers to at
// most 6 MiB of arguments and environment (execve(2)).
const maxInitialStack = 64 << 20

const auxEntry = 9 // AT_ENTRY

// entrySlot finds the value of AT_ENTRY on a new program's stack (System V AMD64 ABI §3.4.1).
func (p *Process) entrySlot(sp, entry uint64) (uint64, error) {
	var buf [64 << 10]byte
	have, pos := 0, 0 // bytes in buf, and those used
	at := sp
	next := func() (word uint64, ok bool) {
		if pos == have {
			if at-sp >= maxInitialStack {
				return 0, false
			}
			have, pos = p.ReadUpTo(buf[:], at)&^7, 0
			if have == 0 {
				return 0, false
			}
		}
		word = binary.LittleEndian.Uint64(buf[pos:])
		pos += 8
		at += 8
		return word, true
	}
	bad := fmt.Errorf("process %d: %w: no auxiliary vector on its stack", p.pid, ErrNotReady)
	args, ok := next()
	for i := uint64(0); ok && i < args; i++ {
		_, ok = next()
	}
	for ended := 0; ok && ended < 2; { // the arguments' end, and the environment's
		var word uint64
		if word, ok = next(); ok && word == 0 {
			ended++
		}
	}
	for ok {
		var tag, value uint64
		if tag, ok = next(); !ok || tag == 0 {
			break
		}
		if value, ok = next(); ok && tag == auxEntry && value == entry {
			return at - 8, nil
		}
	}
	return 0, bad
}

// spareCode finds size bytes behind the code of the loader, or else of the program, in the last page of it.
func (p *Process) spareCode(auxv Auxv, size uint64) (uint64, error) {
	maps, err := p.Maps()
	if err != nil {
		return 0, err
	}
	page := max(auxv.PageSize, 1)
	for _, end := range append(p.loaderCode(auxv), p.programCode(auxv)...) {
		at := (end + 15) &^ 15
		for _, m := range maps {
			if m.Contains(end-1) && m.Perm == PermRead|PermExec && m.Inode != 0 && m.End-end < page && at+size <= m.End {
				return at, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d: %w: there is no room behind its loader's code", p.pid, ErrNotReady)
}

// loaderCode returns where the loader's pieces of code end.
func (p *Process) loaderCode(auxv Auxv) []uint64 {
	var h elf.Header64
	if !p.decode(&h, auxv.Base) || h.Phentsize != uint16(binary.Size(elf.Prog64{})) {
		return nil
	}
	return codeEnds(p.programHeaders(auxv.Base+h.Phoff, uint64(h.Phnum)), auxv.Base)
}

// programCode returns where the program's pieces of code end.
func (p *Process) programCode(auxv Auxv) []uint64 {
	headers := p.programHeaders(auxv.Phdr, auxv.Phnum)
	for _, h := range headers {
		if elf.ProgType(h.Type) == elf.PT_PHDR {
			return codeEnds(headers, auxv.Phdr-h.Vaddr)
		}
	}
	return nil
}

func codeEnds(headers []elf.Prog64, bias uint64) (ends []uint64) {
	for _, h := range headers {
		if elf.ProgType(h.Type) == elf.PT_LOAD && elf.ProgFlag(h.Flags)&elf.PF_X != 0 && h.Memsz == h.Filesz && h.Memsz > 0 {
			ends = append(ends, bias+h.Vaddr+h.Memsz)
		}
	}
	return ends
}

const maxProgramHeaders = 128

func (p *Process) programHeaders(addr, count uint64) []elf.Prog64 {
	headers := make([]elf.Prog64, min(count, maxProgramHeaders))
	if !p.decode(headers, addr) {
		return nil
	}
	return headers
}

// decode reads a structure from memory, false if there is none.
func (p *Process) decode(to any, addr uint64) bool {
	buf := make([]byte, binary.Size(to))
	if len(buf) == 0 || p.ReadUpTo(buf, addr) < len(buf) {
		return false
	}
	_, err := binary.Decode(buf, binary.LittleEndian, to)
	return err == nil
}
