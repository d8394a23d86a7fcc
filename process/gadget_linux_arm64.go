package process

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gadgets are the addresses of the instructions that remote system calls use.
type gadgets struct {
	syscall  uint64 // svc #0; ret
	restorer uint64 // mov x8, #139; svc #0: the vdso's, which signal handlers return to
	store    uint64
	tail     store
	laid     *laid // not nil where they are ours
}

func (g *gadgets) complete() bool { return g.syscall != 0 && g.restorer != 0 && g.store != 0 }

// sigreturnIP is the instruction pointer that seccomp filters see.
func (g *gadgets) sigreturnIP() uint64 { return g.restorer + 8 }

// intact says whether the instructions are still there.
func (g *gadgets) intact(p *Process) bool {
	code := make([]byte, 8)
	at := func(addr uint64, want func([]byte) int) bool {
		_, err := p.ReadAt(code, addr)
		return err == nil && want(code) == 0
	}
	tail := make([]byte, len(g.tail.code))
	_, err := p.ReadAt(tail, g.store)
	return at(g.syscall, findSVC) && at(g.restorer, findRestorer) && err == nil && bytes.Equal(tail, g.tail.code)
}

// PrepareSyscalls looks for the instructions that a remote system call needs, so that a later Stop need not. ErrNoGadget names what is
// missing, where there is no room for it either.
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
	if g.complete() {
		p.gadgets = g
		return g, nil
	}
	var missing []string
	for what, at := range map[string]uint64{"svc #0; ret": g.syscall, "a signal restorer": g.restorer, "str x0 to memory; ret": g.store} {
		if at == 0 {
			missing = append(missing, what)
		}
	}
	slices.Sort(missing)
	return g, fmt.Errorf("process %d: %w: %s", p.pid, ErrNoGadget, strings.Join(missing, ", "))
}

// search looks through one mapping in pieces that overlap by the longest gadget.
func (g *gadgets) search(p *Process, m Mapping) error {
	const piece, overlap = 256 << 10, 4 * (maxStoreTail + 1)
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
	if i := findSVC(code); g.syscall == 0 && i >= 0 {
		g.syscall = addr + uint64(i)
	}
	if i := findRestorer(code); g.restorer == 0 && i >= 0 {
		g.restorer = addr + uint64(i)
	}
	if g.store == 0 {
		if i, s := findStore(code); i >= 0 {
			g.store, g.tail = addr+uint64(i), s
		}
	}
}

// A program may lack the instructions that remote system calls are made of, or sign all its return addresses. They are then laid into what
// the last page of its code has behind the code, for as long as the calls take. If we die meanwhile they stay, where nothing else leads,
// and the thread gets through.
var laidCode = words(
	insnMoveReturn, insnSVC, // rt_sigreturn
	insnSVC, insnRET,
	0xf900_0260, // str x0, [x19]
	0xf841_07fe, // ldr x30, [sp], #16
	insnRET,
)

const (
	laidSyscall = 8
	laidStore   = 16
)

func words(all ...uint32) []byte {
	out := make([]byte, 0, 4*len(all))
	for _, w := range all {
		out = append(out, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return out
}

// laidGadgets are gadgets that makeCalls is to lay.
func (p *Process) laidGadgets() (*gadgets, error) {
	at, err := p.slackBehindCode(uint64(len(laidCode)))
	if err != nil {
		return nil, err
	}
	old := make([]byte, len(laidCode))
	if _, err := p.ReadAt(old, at); err != nil {
		return nil, err
	}
	tail, ok := decodeStore(laidCode[laidStore:])
	if !ok {
		return nil, fmt.Errorf("process %d: %w", p.pid, ErrNoGadget)
	}
	return &gadgets{laid: &laid{at, old}, restorer: at, syscall: at + laidSyscall, store: at + laidStore, tail: tail}, nil
}

// syscallBefore knows "mov x8, #number; svc #0", also with w8.
func (host) syscallBefore(code []byte) (number uint64, ok bool) {
	if len(code) < 8 {
		return 0, false
	}
	move := word(code, len(code)-8)
	if word(code, len(code)-4) != insnSVC || move&0x7fe0_001f != 0x5280_0008 {
		return 0, false
	}
	return uint64(move >> 5 & 0xffff), true
}

// sleepCalls are by their numbers (include/uapi/asm-generic/unistd.h).
func (host) sleepCalls() []sleepCall {
	return []sleepCall{
		{number: unix.SYS_PSELECT6, timeArg: 4},                               // (0, 0, 0, 0, ts, 0)
		{number: unix.SYS_PPOLL, timeArg: 2, args: [6]uint64{4: 8}},           // (0, 0, ts, 0, 8)
		{number: unix.SYS_CLOCK_NANOSLEEP, timeArg: 2, args: [6]uint64{0: 1}}, // (CLOCK_MONOTONIC, 0, ts, 0)
		{number: unix.SYS_NANOSLEEP, timeArg: 0},                              // (ts, 0)
	}
}
