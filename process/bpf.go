package process

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Filter is one seccomp filter: classic BPF over struct seccomp_data.
type Filter []FilterInstruction

// A FilterInstruction is one struct sock_filter.
type FilterInstruction struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// SyscallData is what a seccomp filter sees (struct seccomp_data in
// include/uapi/linux/seccomp.h).
type SyscallData struct {
	Number             uint32
	Arch               uint32 // AUDIT_ARCH_…
	InstructionPointer uint64
	Args               [6]uint64
}

// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of include/uapi/linux/audit.h.
const (
	AuditArchX8664   = 0xc000003e
	AuditArchAArch64 = 0xc00000b7
)

// The filter results that let a system call pass; SECCOMP_RET_LOG does too but
// writes an audit record.
const (
	seccompRetLog    = 0x7ffc0000
	seccompRetAllow  = 0x7fff0000
	seccompRetAction = 0xffff0000 // SECCOMP_RET_ACTION_FULL
)

const (
	bpfMemWords     = 16
	bpfMaxLen       = 4096 // BPF_MAXINSNS
	seccompDataSize = 64
)

// ErrFilter marks a filter that the kernel would not have accepted.
var ErrFilter = errors.New("invalid seccomp filter")

// Verdict runs all filters of a thread over one system call and returns the
// most restrictive result, as the kernel does: the least action when taken as
// a signed number (kernel/seccomp.c).
func Verdict(filters []Filter, data SyscallData) (uint32, error) {
	result := uint32(seccompRetAllow)
	for i, f := range filters {
		r, err := f.Run(data)
		if err != nil {
			return 0, fmt.Errorf("filter %d: %w", i, err)
		}
		if int32(r&seccompRetAction) < int32(result&seccompRetAction) {
			result = r
		}
	}
	return result, nil
}

// Passes says whether a verdict lets the system call be made unchanged.
func Passes(verdict uint32) bool {
	action := verdict & seccompRetAction
	return action == seccompRetAllow || action == seccompRetLog
}

func (d SyscallData) bytes() (b [seccompDataSize]byte) {
	binary.LittleEndian.PutUint32(b[0:], d.Number)
	binary.LittleEndian.PutUint32(b[4:], d.Arch)
	binary.LittleEndian.PutUint64(b[8:], d.InstructionPointer)
	for i, arg := range d.Args {
		binary.LittleEndian.PutUint64(b[16+8*i:], arg)
	}
	return b
}

type bpfMachine struct {
	a, x uint32
	mem  [bpfMemWords]uint32
	data [seccompDataSize]byte
}

// Run returns the filter's result for one system call. Jumps go forward only,
// so the run takes at most len(f) steps.
func (f Filter) Run(data SyscallData) (uint32, error) {
	if len(f) == 0 || len(f) > bpfMaxLen {
		return 0, fmt.Errorf("%w: %d instructions", ErrFilter, len(f))
	}
	m := bpfMachine{data: data.bytes()}
	for pc := 0; pc < len(f); pc++ {
		in := f[pc]
		switch in.Code & 7 {
		case 6: // BPF_RET
			if in.Code&0x18 == 0x10 {
				return m.a, nil
			}
			return in.K, nil
		case 5: // BPF_JMP
			skip, ok := m.jump(in)
			if !ok || uint64(pc)+uint64(skip)+1 >= uint64(len(f)) {
				return 0, fmt.Errorf("%w: jump at instruction %d", ErrFilter, pc)
			}
			pc += int(skip)
		default:
			if !m.step(in) {
				return 0, fmt.Errorf("%w: code %#x at instruction %d", ErrFilter, in.Code, pc)
			}
		}
	}
	return 0, fmt.Errorf("%w: no return", ErrFilter)
}

func (m *bpfMachine) operand(in FilterInstruction) uint32 {
	if in.Code&8 != 0 { // BPF_X
		return m.x
	}
	return in.K
}

func (m *bpfMachine) jump(in FilterInstruction) (skip uint32, ok bool) {
	v := m.operand(in)
	var taken bool
	switch in.Code & 0xf0 {
	case 0x00:
		return in.K, true
	case 0x10:
		taken = m.a == v
	case 0x20:
		taken = m.a > v
	case 0x30:
		taken = m.a >= v
	case 0x40:
		taken = m.a&v != 0
	default:
		return 0, false
	}
	if taken {
		return uint32(in.JT), true
	}
	return uint32(in.JF), true
}

// step runs everything but jumps and returns. The codes are those that
// seccomp_check_filter lets pass.
func (m *bpfMachine) step(in FilterInstruction) bool {
	switch in.Code & 7 {
	case 0: // BPF_LD
		return m.load(in, &m.a)
	case 1: // BPF_LDX
		return in.Code&0xe0 != 0x20 && m.load(in, &m.x)
	case 2, 3: // BPF_ST, BPF_STX
		if in.K >= bpfMemWords {
			return false
		}
		m.mem[in.K] = m.a
		if in.Code&7 == 3 {
			m.mem[in.K] = m.x
		}
		return true
	case 4: // BPF_ALU
		return m.alu(in)
	default: // BPF_MISC
		if in.Code&0xf8 == 0x80 {
			m.a = m.x
		} else {
			m.x = m.a
		}
		return true
	}
}

func (m *bpfMachine) load(in FilterInstruction, to *uint32) bool {
	switch in.Code & 0xf8 {
	case 0x00: // BPF_IMM
		*to = in.K
	case 0x20: // BPF_ABS, in words only
		if in.K%4 != 0 || in.K > seccompDataSize-4 {
			return false
		}
		*to = binary.LittleEndian.Uint32(m.data[in.K:])
	case 0x60: // BPF_MEM
		if in.K >= bpfMemWords {
			return false
		}
		*to = m.mem[in.K]
	case 0x80: // BPF_LEN
		*to = seccompDataSize
	default:
		return false
	}
	return true
}

func (m *bpfMachine) alu(in FilterInstruction) bool {
	v := m.operand(in)
	switch in.Code & 0xf0 {
	case 0x00:
		m.a += v
	case 0x10:
		m.a -= v
	case 0x20:
		m.a *= v
	case 0x30:
		if v == 0 {
			// The kernel ends such a filter with 0, which kills the thread.
			return false
		}
		m.a /= v
	case 0x40:
		m.a |= v
	case 0x50:
		m.a &= v
	case 0x60:
		m.a <<= v & 31
	case 0x70:
		m.a >>= v & 31
	case 0x80:
		m.a = -m.a
	case 0xa0:
		m.a ^= v
	default:
		return false
	}
	return true
}
