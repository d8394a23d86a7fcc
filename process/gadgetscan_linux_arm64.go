package process

import "encoding/binary"

// The instructions found in a target's code that a remote system call is made of (Arm ARM, chapter C6). All of them are pieces of
// ordinary functions. None is entered by BR or BLR, so it matters to none whether its page is guarded (BTI).
const (
	insnSVC         = 0xd400_0001 // svc #0
	insnRET         = 0xd65f_03c0 // ret
	insnMoveReturn  = 0xd280_1168 // mov x8, #139: rt_sigreturn
	insnMoveReturnW = 0x5280_1168 // mov w8, #139
)

// A store is a function's tail that puts x0 into memory, takes its return address from the stack and goes there: it brings a system call's
// result to where the tracer reads it. Where the address is signed, which it checks, it is of no use.
type store struct {
	code   []byte // from the store up to and with the ret
	base   int    // str x0, [base, #disp]: x19 to x28
	disp   uint64
	taken  uint64 // bytes taken from the stack
	linkAt uint64 // where in them x30 comes from
}

// maxStoreTail bounds the instructions from the store to its ret.
const maxStoreTail = 12

// findSVC and findRestorer return offsets in code, -1 if there is none.
func findSVC(code []byte) int {
	return findWords(code, func(w, next uint32) bool { return w == insnSVC && next == insnRET })
}

func findRestorer(code []byte) int {
	return findWords(code, func(w, next uint32) bool { return (w == insnMoveReturn || w == insnMoveReturnW) && next == insnSVC })
}

func findWords(code []byte, wanted func(w, next uint32) bool) int {
	for at := 0; at+8 <= len(code); at += 4 {
		if wanted(word(code, at), word(code, at+4)) {
			return at
		}
	}
	return -1
}

func word(code []byte, at int) uint32 { return binary.LittleEndian.Uint32(code[at:]) }

// findStore returns the offset of the first store that will do, or -1.
func findStore(code []byte) (int, store) {
	for at := 0; at+4 <= len(code); at += 4 {
		if _, _, ok := storeOfX0(word(code, at)); !ok {
			continue
		}
		if s, ok := decodeStore(code[at:]); ok {
			return at, s
		}
	}
	return -1, store{}
}

// storeOfX0 knows STR (immediate, unsigned offset) of x0 to a register that functions keep, which neither the kernel nor the arguments of a
// system call change.
func storeOfX0(w uint32) (base int, disp uint64, ok bool) {
	base = int(w >> 5 & 31)
	return base, uint64(w>>10&0xfff) * 8, w&0xffc0_001f == 0xf900_0000 && base >= 19 && base <= 28
}

// decodeStore follows a store through instructions that only take registers from the stack, or set x0, until a ret.
func decodeStore(code []byte) (store, bool) {
	var s store
	var ok bool
	if len(code) < 4 {
		return s, false
	}
	if s.base, s.disp, ok = storeOfX0(word(code, 0)); !ok {
		return s, false
	}
	linked, sp := false, uint64(0)
	for at := 4; at+4 <= len(code) && at <= 4*maxStoreTail; at += 4 {
		w := word(code, at)
		if w == insnRET {
			s.code, s.taken = append([]byte(nil), code[:at+4]...), sp
			return s, linked && sp > s.linkAt && sp%16 == 0 && sp <= maxTaken
		}
		l, known := decodePop(w)
		if !known || sp+l.offset+l.size > maxTaken {
			return s, false
		}
		for i, r := range l.regs {
			if r == linkRegister {
				linked, s.linkAt = true, sp+l.offset+8*uint64(i)
			}
		}
		sp += l.moves
	}
	return s, false
}

const (
	linkRegister = 30
	maxTaken     = 512 // bytes that a tail may take from the stack
)

// A pop is an instruction of a function's end.
type pop struct {
	regs   []int  // taken from the stack, 8 bytes each
	offset uint64 // from the stack pointer as it is before
	size   uint64
	moves  uint64 // by how much it raises the stack pointer
}

// decodePop knows LDP and LDR of general registers from the stack, ADD to the stack pointer, moves of constants to x0 and NOP.
func decodePop(w uint32) (pop, bool) {
	const sp = 31
	first, base, second := int(w&31), int(w>>5&31), int(w>>10&31)
	pair := uint64(int64(int32(w<<10)>>25)) * 8 // imm7
	switch {
	case w == 0xd503_201f: // nop
		return pop{}, true
	case w&0xffc0_0000 == 0xa940_0000 && base == sp && pair < maxTaken: // ldp a, b, [sp, #pair]
		return pop{regs: []int{first, second}, offset: pair, size: 16}, true
	case w&0xffc0_0000 == 0xa8c0_0000 && base == sp && pair < maxTaken: // ldp a, b, [sp], #pair
		return pop{regs: []int{first, second}, size: 16, moves: pair}, true
	case w&0xffc0_0000 == 0xf940_0000 && base == sp: // ldr a, [sp, #imm12]
		return pop{regs: []int{first}, offset: uint64(w>>10&0xfff) * 8, size: 8}, true
	case w&0xffe0_0c00 == 0xf840_0400 && base == sp: // ldr a, [sp], #imm9
		moves := uint64(int64(int32(w<<11) >> 23))
		return pop{regs: []int{first}, size: 8, moves: moves}, moves < maxTaken
	case w&0xffc0_03ff == 0x9100_03ff: // add sp, sp, #imm12
		return pop{moves: uint64(w >> 10 & 0xfff)}, true
	case w&0x7fe0_001f == 0x5280_0000: // mov x0, #imm16
		return pop{}, true
	}
	return pop{}, false
}
