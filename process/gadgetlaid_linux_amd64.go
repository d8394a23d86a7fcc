package process

import "fmt"

// A program without a C library may lack the instructions that remote system calls are made of. They are then laid into what the
// last page of its code has behind the code, for as long as the calls take. If we die meanwhile they stay, where nothing else leads,
// and the thread gets through.
var laidCode = []byte{
	0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, // mov $15, %rax; syscall
	0xc3,                   // ret
	0x48, 0x89, 0x03, 0xc3, // mov %rax, (%rbx); ret
}

const (
	laidSyscall = 7
	laidStore   = 10
)

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
	g := &gadgets{laid: &laid{at, old}, syscall: at + laidSyscall, restorer: at, store: at + laidStore}
	g.restorerCode = restorerLong
	var ok bool
	if g.tail, ok = decodeStore(laidCode[laidStore:]); !ok {
		return nil, fmt.Errorf("process %d: %w", p.pid, ErrNoGadget)
	}
	return g, nil
}
