package unwind

import "bytes"

// A signalFrame tells how the kernel of Linux lays out what it saves for a signal
// handler, as seen from the code that the handler returns to. C libraries without
// CFI for that code (musl's) and kernels (arm64's vdso) leave nothing else to go by.
type signalFrame struct {
	code    []byte // the trampoline's instructions
	pointer int64  // where the context's address is, from the stack pointer; -1: it is context bytes above it
	context int64  // of struct sigcontext's first byte
	regs    []savedRegister
	pc      int64 // in the context
}

type savedRegister struct {
	reg int
	off int64 // in the context
}

// amd64Signal: struct rt_sigframe without its return address is struct ucontext,
// whose mcontext begins at 40 (arch/x86/include/asm/sigframe.h, uapi sigcontext.h).
var amd64Signal = []signalFrame{
	{[]byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, -1, 40, amd64Context, 128}, // mov $15, %rax; syscall
	{[]byte{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05}, -1, 40, amd64Context, 128},             // mov $15, %eax; syscall
}

var amd64Context = []savedRegister{
	{8, 0}, {9, 8}, {10, 16}, {11, 24}, {12, 32}, {13, 40}, {14, 48}, {15, 56},
	{AMD64RDI, 64}, {AMD64RSI, 72}, {AMD64RBP, 80}, {AMD64RBX, 88}, {AMD64RDX, 96}, {AMD64RAX, 104}, {AMD64RCX, 112},
	{AMD64RSP, 120},
}

// arm64Signal: struct rt_sigframe is siginfo (128 bytes) and ucontext, whose mcontext
// begins at 176 with the fault's address (arch/arm64/include/uapi/asm/sigcontext.h).
var arm64Signal = []signalFrame{
	{[]byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, -1, 128 + 176, arm64Context(), 264}, // mov x8, #139; svc #0
}

func arm64Context() []savedRegister {
	var all []savedRegister
	for reg := range 32 { // x0 to x30, sp
		all = append(all, savedRegister{reg, 8 + 8*int64(reg)})
	}
	return all
}

// i386Signal: sigreturn finds struct sigcontext behind the signal's number, which the
// trampoline pops first; rt_sigreturn by the third argument, in struct ucontext at 20
// (arch/x86/include/asm/sigframe.h).
var i386Signal = []signalFrame{
	{[]byte{0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80}, -1, 4, i386Context, 56}, // pop %eax; mov $119, %eax; int $0x80
	{[]byte{0xb8, 0xad, 0, 0, 0, 0xcd, 0x80}, 8, 20, i386Context, 56},       // mov $173, %eax; int $0x80
}

var i386Context = []savedRegister{{7, 16}, {6, 20}, {5, 24}, {4, 28}, {3, 32}, {2, 36}, {1, 40}, {0, 44}}

// signalLayout returns the layout of the signal frame that belongs to code, nil when
// that is no signal trampoline.
func (w *Walker) signalLayout(code []byte) *signalFrame {
	for k := range w.arch.signal {
		if f := &w.arch.signal[k]; bytes.HasPrefix(code, f.code) {
			return f
		}
	}
	return nil
}

// stepSignal goes from a signal trampoline to what the signal interrupted.
func (w *Walker) stepSignal(frames []Frame) ([]Frame, End, bool) {
	k := &w.walk
	code := w.codeAround(frames[len(frames)-1].PC)
	f := w.signalLayout(code.from())
	if f == nil { // it is no longer there
		return frames, End{Reason: NoCFI, Addr: frames[len(frames)-1].PC}, false
	}
	at, ok := k.sp, true
	if f.pointer >= 0 {
		at, ok = w.reader.word(w.arch.add(k.sp, f.pointer))
	}
	at = w.arch.add(at, f.context)
	var next Registers
	for _, s := range f.regs {
		v, read := w.reader.word(w.arch.add(at, s.off))
		ok = ok && read
		next.Set(s.reg, v)
	}
	pc, read := w.reader.word(w.arch.add(at, f.pc))
	if !ok || !read {
		return frames, End{Reason: Unreadable, Addr: at}, false
	}
	next.PC = pc
	return w.advance(frames, &next, BySignalFrame)
}
