package process

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// invokeFrame is the register that leads to the signal frame: functions leave x19 alone (AAPCS64 §6.1.1).
const invokeFrame = 19

// returnCode restores the thread from its signal frame. The result stays in x0 and x1. No call frame information goes with it, so that whoever unwinds
// the stack from within the function ends here.
func (host) returnCode() (code []byte, home, end uint64) {
	code = words(
		0x9100_0000|invokeFrame<<5|31, // mov sp, x19
		insnMoveReturn, insnSVC,
	)
	return code, 0, uint64(len(code))
}

const (
	integerArguments = 8 // in registers (AAPCS64 §6.8.2)
	floatArguments   = 8
)

// invocation lays out, from high to low: the arguments' data, the frame that restores the thread, the arguments that have no register. The function
// returns to what is in x30.
func (host) invocation(p invocationPlan) (*invocationFrame, error) {
	const most = 256 << 10
	sp := p.own.Sp
	if sp < most || sp >= 1<<52 {
		return nil, fmt.Errorf("%w: stack pointer %#x", ErrNoSafeThread, sp)
	}
	own, err := frameOf(&p.rest, p.mask, p.vector)
	if err != nil {
		return nil, err
	}
	end := (sp - arch.redZone()) &^ 15
	at := end
	addrs := make([]uint64, len(p.arguments))
	for i, a := range p.arguments {
		if a.Data != nil {
			at = (at - uint64(len(a.Data))) &^ 15
			addrs[i] = at
		}
	}
	f := &invocationFrame{end: end, frame: (at - uint64(own.size())) &^ 15, start: p.own}
	integers, floats, stack := argumentRegisters(p.arguments, addrs, integerArguments, floatArguments)
	f.base = (f.frame - 8*uint64(len(stack))) &^ 15

	f.bytes = make([]byte, end-f.base)
	for i, v := range stack {
		binary.LittleEndian.PutUint64(f.bytes[8*i:], v)
	}
	copy(f.bytes[f.frame-f.base:], own.append(nil))
	for i, a := range p.arguments {
		if a.Data != nil {
			copy(f.bytes[addrs[i]-f.base:], a.Data)
		}
	}

	_, home, after := arch.returnCode()
	f.after = p.code + after
	f.home = p.own
	f.home.LeaveSyscall()
	f.home.Pc, f.home.Sp, f.home.Regs[invokeFrame], f.home.Pstate = p.code+home, f.frame, f.frame, p.own.Pstate&^transient

	r := &f.start
	r.LeaveSyscall()
	copy(r.Regs[:integerArguments], make([]uint64, integerArguments))
	copy(r.Regs[:integerArguments], integers)
	r.Regs[linkRegister], r.Regs[invokeFrame], r.Regs[29] = p.code, f.frame, 0
	r.Pc, r.Sp, r.Pstate = p.function, f.base, p.own.Pstate&^transient
	f.vector, err = startVector(p.vector, floats)
	return f, err
}

// transient are bits of the processor's state that belong to the instruction at which the thread is: N, Z, C and V, and by what kind of branch it
// has come there (PSTATE.BTYPE).
const transient = 0xf<<28 | 3<<10

// startVector is the vector state with which a function begins: its arguments, and what the thread has set of rounding (FPCR), which functions inherit.
func startVector(own []byte, floats []uint64) ([]byte, error) {
	records, err := frameRecordsOf(own)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	out := binary.LittleEndian.AppendUint64(nil, noteFPSIMD)
	state := make([]byte, sizeUserFP)
	copy(state[fpsimdStatus:], records[8:16]) // fpsr and fpcr
	le.PutUint32(state[fpsimdStatus:], 0)
	for i, v := range floats {
		le.PutUint64(state[16*i:], v)
	}
	return append(out, state...), nil
}

func (host) isHome(r *Regs, f *invocationFrame) bool {
	return r.Pc == f.after && r.Sp == f.frame && r.Call == unix.SYS_RT_SIGRETURN
}

// returned reads x0 and x1, and v0 and v1. A long double is a quadruple of 128 bits in v0 (AAPCS64 §5.1.2): its exponent is that of x87's, and of its
// fraction as much is taken as that has.
func (host) returned(r *Regs, vector []byte) (out Returned) {
	out.Integer = [2]uint64{r.Regs[0], r.Regs[1]}
	records, err := frameRecordsOf(vector)
	if err != nil {
		return out
	}
	le := binary.LittleEndian
	const first = 16 // struct fpsimd_context: behind its head and the status
	low, high := le.Uint64(records[first:]), le.Uint64(records[first+8:])
	out.Float = [2]uint64{low, le.Uint64(records[first+16:])}
	exponent, fraction := uint16(high>>48), high<<16>>1|low>>49
	if exponent&0x7fff != 0 {
		fraction |= 1 << 63
	}
	le.PutUint64(out.X87[:], fraction)
	le.PutUint16(out.X87[8:], exponent)
	return out
}

func (host) forgetsTimeout(uint64) bool { return false }

// waitsAnew: a call that is interrupted for us is always begun anew, see restart_linux_arm64.go.
func (host) waitsAnew(t *Thread, own *Regs, _ bool) bool {
	_, waits := arch.waitsByBlock(own)
	return waits && t.atCall(own)
}

// The kernel puts x7 back behind a stop at a system call (arch/arm64/kernel/ptrace.c, report_syscall).
func (host) setsAllAtSyscalls() bool { return false }
