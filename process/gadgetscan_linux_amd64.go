package process

import "bytes"

// The instructions found in a target's code that a remote system call is made
// of. All of them are pieces of ordinary functions.
var (
	syscallRet = []byte{0x0f, 0x05, 0xc3} // syscall; ret
	// mov $15, %rax; syscall: what C libraries give the kernel as sa_restorer.
	restorerLong  = []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}
	restorerShort = []byte{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05} // mov $15, %eax; syscall
	// A static program that handles no signal has no restorer. Then this takes
	// the 15 from the stack and "syscall; ret" does the rest.
	popRAX = []byte{0x58, 0xc3} // pop %rax; ret
	popRDI = []byte{0x5f, 0xc3} // pop %rdi; ret
)

// A baseRegister is a register that the kernel and the system-call arguments
// leave alone, by its number in the encoding.
type baseRegister uint8

const (
	regRBX baseRegister = 3
	regRBP baseRegister = 5
	regR12 baseRegister = 12
	regR13 baseRegister = 13
	regR14 baseRegister = 14
	regR15 baseRegister = 15

	// regRDI holds an argument, so it is loaded between call and store.
	regRDI baseRegister = 7
)

// A store is a function's tail that puts rax into memory and returns: it brings
// a system call's result to where the tracer reads it.
type store struct {
	code []byte // from the store up to and with the ret
	base baseRegister
	disp int32 // mov %rax, disp(base)
	pop  int   // bytes taken from the stack before the ret
}

// maxStoreTail bounds the bytes between the store and its ret.
const maxStoreTail = 48

// scanRestorer returns the offset and length of the first signal restorer, or -1.
func scanRestorer(code []byte) (offset, length int) {
	if i := bytes.Index(code, restorerLong); i >= 0 {
		return i, len(restorerLong)
	}
	return bytes.Index(code, restorerShort), len(restorerShort)
}

// scanStore returns the offset of the first store whose base is wanted, or -1.
func scanStore(code []byte, wanted func(baseRegister) bool) (int, store) {
	for at := 0; ; at++ {
		i := bytes.IndexByte(code[at:], 0x89)
		if i < 0 {
			return -1, store{}
		}
		at += i
		if at == 0 {
			continue
		}
		if s, ok := decodeStore(code[at-1:]); ok && wanted(s.base) {
			return at - 1, s
		}
	}
}

// decodeStore reads "mov %rax, disp(base)" (REX.W 89 /r, Intel SDM vol. 2
// §2.1.3) and the harmless rest of the function behind it.
func decodeStore(code []byte) (store, bool) {
	if len(code) < 4 || code[0]&^1 != 0x48 || code[1] != 0x89 || code[2]&0x38 != 0 {
		return store{}, false
	}
	s := store{base: baseRegister(code[2]&7 | code[0]&1<<3)}
	n := 3
	switch s.base {
	case regRBX, regRBP, regRDI, regR13, regR14, regR15:
	case regR12:
		if code[3] != 0x24 { // an SIB byte without index
			return store{}, false
		}
		n = 4
	default:
		return store{}, false
	}
	switch code[2] >> 6 {
	case 0: // with the low bits 101 this is not a register but RIP-relative
		if code[2]&7 == 5 {
			return store{}, false
		}
	case 1:
		if len(code) <= n {
			return store{}, false
		}
		s.disp = int32(int8(code[n]))
		n++
	default:
		return store{}, false
	}
	end, pop, ok := decodeTail(code[n:])
	if !ok {
		return store{}, false
	}
	s.code, s.pop = bytes.Clone(code[:n+end]), pop
	return s, true
}

// decodeTail follows instructions that only take registers from the stack or
// clear eax until a ret, and returns where that ends and how much was taken.
func decodeTail(code []byte) (end, pop int, ok bool) {
	limit := min(len(code), maxStoreTail)
	for end < limit {
		rest := code[end:limit]
		switch {
		case rest[0] == 0xc3:
			return end + 1, pop, true
		case rest[0] == 0x5b || rest[0] == 0x5d || rest[0] == 0x5e || rest[0] == 0x5f: // pop rbx, rbp, rsi, rdi
			end, pop = end+1, pop+8
		case len(rest) > 1 && rest[0] == 0x41 && rest[1] >= 0x5c && rest[1] <= 0x5f: // pop r12 … r15
			end, pop = end+2, pop+8
		case len(rest) > 3 && rest[0] == 0x48 && rest[1] == 0x83 && rest[2] == 0xc4 && rest[3] < 0x80 && rest[3]%8 == 0: // add $imm8, %rsp
			end, pop = end+4, pop+int(rest[3])
		case len(rest) > 1 && rest[0] == 0x31 && rest[1] == 0xc0: // xor %eax, %eax
			end += 2
		default:
			return 0, 0, false
		}
	}
	return 0, 0, false
}
