package process

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// returnCode takes the result to where the tracer finds it and restores the thread from its signal frame, to which rbx leads: functions
// leave rbx alone. No call frame information goes with it, so that whoever unwinds the stack from within the function ends here.
func (host) returnCode() (code []byte, home, end uint64) {
	code = []byte{
		0x48, 0x89, 0xc7, // mov %rax, %rdi
		0x48, 0x89, 0xdc, // mov %rbx, %rsp
		0xb8, 0x0f, 0, 0, 0, // mov $15, %eax
		0x0f, 0x05, // syscall
	}
	return code, 6, uint64(len(code))
}

const (
	integerArguments = 6 // in registers (System V AMD64 ABI §3.2.3)
	floatArguments   = 8
)

// invocation lays out, from high to low: the vector state and the arguments' data, the frame that restores the thread, the arguments
// that have no register, the return address.
func (host) invocation(p invocationPlan) (*invocationFrame, error) {
	const most = 256 << 10
	sp := p.own.Rsp
	if sp < most || sp >= 1<<47 {
		return nil, fmt.Errorf("%w: stack pointer %#x", ErrNoSafeThread, sp)
	}
	vector, err := frameXState(p.vector)
	if err != nil {
		return nil, err
	}
	end := sp - arch.redZone()
	at := (end - uint64(len(vector))) &^ (xstateAlign - 1)
	own := frameOf(&p.rest, p.mask)
	own.vector = at
	addrs := make([]uint64, len(p.arguments))
	for i, a := range p.arguments {
		if a.Data != nil {
			at = (at - uint64(len(a.Data))) &^ 15
			addrs[i] = at
		}
	}
	f := &invocationFrame{end: end, frame: (at - ucSize) &^ 15, start: p.own}
	integers, floats, stack := argumentRegisters(p.arguments, addrs, integerArguments, floatArguments)
	args := (f.frame - 8*uint64(len(stack))) &^ 15
	f.base = args - 8

	f.bytes = make([]byte, end-f.base)
	le := binary.LittleEndian
	le.PutUint64(f.bytes, p.code)
	for i, v := range stack {
		le.PutUint64(f.bytes[args-f.base+8*uint64(i):], v)
	}
	copy(f.bytes[f.frame-f.base:], own.append(nil))
	for i, a := range p.arguments {
		if a.Data != nil {
			copy(f.bytes[addrs[i]-f.base:], a.Data)
		}
	}
	copy(f.bytes[own.vector-f.base:], vector)

	_, home, after := arch.returnCode()
	f.after = p.code + after
	f.home = p.own
	f.home.LeaveSyscall()
	f.home.Rip, f.home.Rsp, f.home.Rbx, f.home.Eflags = p.code+home, f.frame, f.frame, plainFlags

	r := &f.start
	r.LeaveSyscall()
	var regs [integerArguments]uint64
	copy(regs[:], integers)
	r.Rdi, r.Rsi, r.Rdx, r.Rcx, r.R8, r.R9 = regs[0], regs[1], regs[2], regs[3], regs[4], regs[5]
	r.Rax = uint64(len(floats)) // functions with variable arguments look at al
	r.Rip, r.Rsp, r.Rbx, r.Rbp, r.Eflags = p.function, f.base, f.frame, 0, plainFlags
	f.vector = startVector(p.vector, floats)
	return f, nil
}

// plainFlags are what functions may expect: the direction flag is clear.
const plainFlags = 0x202

// Offsets in the FXSAVE area (Intel SDM vol. 1 §10.5.1).
const (
	fxControl = 0 // FCW
	fxMXCSR   = 24
	fxST0     = 32
	fxXMM0    = 160
	fxEnd     = 416

	plainControl = 0x37f
	plainMXCSR   = 0x1f80
	mxcsrFlags   = 0x3f // what has happened
	xfeaturePKRU = 1 << 9
)

// startVector is the vector state with which a function begins: its arguments, an empty x87 stack, and what the thread has set of
// rounding and masks, which functions inherit. Its memory protection keys stay.
func startVector(own []byte, floats []uint64) []byte {
	le := binary.LittleEndian
	out := append([]byte(nil), own...)
	inUse := le.Uint64(own[xstateLegacy:])
	control, mxcsr := uint16(plainControl), uint32(plainMXCSR)
	if inUse&1 != 0 {
		control = le.Uint16(own[fxControl:])
	}
	if inUse&^1 != 0 {
		if m := le.Uint32(own[fxMXCSR:]) &^ mxcsrFlags; m != 0 {
			mxcsr = m
		}
	}
	clear(out[:fxMXCSR])
	clear(out[fxST0:fxEnd])
	le.PutUint16(out[fxControl:], control)
	le.PutUint32(out[fxMXCSR:], mxcsr)
	for i, v := range floats {
		le.PutUint64(out[fxXMM0+16*i:], v)
	}
	le.PutUint64(out[xstateLegacy:], inUse&xfeaturePKRU|xfeatureLegacy)
	return out
}

func (host) isHome(r *Regs, f *invocationFrame) bool {
	return r.Rip == f.after && r.Rsp == f.frame && r.Orig_rax == 15
}

func (host) returned(r *Regs, vector []byte) (out Returned) {
	out.Integer = [2]uint64{r.Rdi, r.Rdx}
	if len(vector) >= fxEnd {
		copy(out.X87[:], vector[fxST0:])
		out.Float = [2]uint64{binary.LittleEndian.Uint64(vector[fxXMM0:]), binary.LittleEndian.Uint64(vector[fxXMM0+16:])}
	}
	return out
}

func (host) forgetsTimeout(number uint64) bool { return number == unix.SYS_POLL }

func (host) waitsAnew(_ *Thread, own *Regs, forgets bool) bool {
	return restartCode(own) == restartByBlock && forgets
}

func (host) setsAllAtSyscalls() bool { return true }
