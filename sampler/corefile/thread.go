package corefile

import "github.com/callreel/callreel/unwind"

// statusLayout is where struct elf_prstatus has what is needed: the header is
// siginfo's three numbers, the signal, two masks and four IDs, four times, and then
// come the general registers in the order of ptrace (arch/*/include/uapi/asm/ptrace.h).
type statusLayout struct {
	pid, regs int   // offsets
	count     int   // registers
	order     []int // DWARF number of each, -1 for others
	pc        int   // index
	tls       int   // index, -1 when not among them
}

var layouts = map[*unwind.Arch]statusLayout{
	unwind.AMD64: {32, 112, 27, []int{
		15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, // r15 to r12, rbp, rbx, r11 to r8, rax, rcx, rdx, rsi, rdi
		-1, -1, -1, -1, 7, // orig_rax, rip, cs, eflags, rsp
	}, 16, 21},
	unwind.ARM64: {32, 112, 34, []int{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
	}, 32, -1},
	unwind.I386: {24, 72, 17, []int{
		3, 1, 2, 6, 7, 5, 0, -1, -1, -1, -1, -1, -1, -1, -1, 4, // ebx, ecx, edx, esi, edi, ebp, eax, …, esp
	}, 12, -1},
}

// maxThreads bounds the threads of one core; a note of each is some hundred bytes, so
// that a real file of that many is possible, but no kernel allows more.
const maxThreads = 1 << 22

// threadNote reads struct elf_prstatus.
func (f *File) threadNote(desc []byte, offset uint64) {
	l := layouts[f.Arch]
	size := int(f.wordSize())
	if len(desc) < l.regs+l.count*size {
		f.problem("note at offset %#x: NT_PRSTATUS of %d bytes, want %d", offset, len(desc), l.regs+l.count*size)
		return
	}
	if len(f.Threads) == maxThreads {
		return
	}
	o := f.image.ByteOrder
	t := Thread{TID: int(int32(o.Uint32(desc[l.pid:]))), Signal: int(int16(o.Uint16(desc[12:])))}
	reg := func(k int) uint64 { return f.word(desc[l.regs+k*size:]) }
	for k, number := range l.order {
		if number >= 0 {
			t.Regs.Set(number, reg(k))
		}
	}
	t.Regs.PC = reg(l.pc)
	if l.tls >= 0 {
		t.TLS = reg(l.tls)
	}
	f.Threads = append(f.Threads, t)
}
