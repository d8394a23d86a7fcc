package crash

import (
	"encoding/binary"
	"fmt"

	"github.com/callreel/callreel/unwind"
)

// contextLayout is where a CONTEXT has the registers (winnt.h; for arm64 Breakpad's
// minidump_cpu_arm64.h, whose old form differs only before them and behind).
type contextLayout struct {
	size  int // that is needed
	width int // of a register in bytes
	pc    int
	regs  []contextRegister
}

type contextRegister struct {
	name string
	off  int
	reg  int // DWARF number
}

var contextAMD64 = &contextLayout{size: 256, width: 8, pc: 248, regs: []contextRegister{
	{"rax", 120, 0}, {"rbx", 144, 3}, {"rcx", 128, 2}, {"rdx", 136, 1}, {"rsi", 168, 4}, {"rdi", 176, 5}, {"rbp", 160, 6}, {"rsp", 152, 7},
	{"r8", 184, 8}, {"r9", 192, 9}, {"r10", 200, 10}, {"r11", 208, 11}, {"r12", 216, 12}, {"r13", 224, 13}, {"r14", 232, 14}, {"r15", 240, 15},
	{"rip", 248, -1},
}}

var contextI386 = &contextLayout{size: 204, width: 4, pc: 184, regs: []contextRegister{
	{"eax", 176, 0}, {"ebx", 164, 3}, {"ecx", 172, 1}, {"edx", 168, 2}, {"esi", 160, 6}, {"edi", 156, 7}, {"ebp", 180, 5}, {"esp", 196, 4},
	{"eip", 184, -1},
}}

var contextARM64 = func() *contextLayout {
	l := &contextLayout{size: 272, width: 8, pc: 264}
	for n := range 31 {
		l.regs = append(l.regs, contextRegister{fmt.Sprintf("x%d", n), 8 + 8*n, n})
	}
	l.regs = append(l.regs, contextRegister{"sp", 256, 31}, contextRegister{"pc", 264, -1})
	return l
}()

func (l *contextLayout) value(b []byte, off int) uint64 {
	if l.width == 4 {
		return uint64(binary.LittleEndian.Uint32(b[off:]))
	}
	return binary.LittleEndian.Uint64(b[off:])
}

// registers reads a context.
func (d *minidump) registers(at location) (*unwind.Registers, []Register, error) {
	l := d.context
	if l == nil {
		return nil, nil, nil
	}
	if int64(at.size) < int64(l.size) || at.size > minidumpContextSize {
		return nil, nil, fmt.Errorf("crash: %s: %w: registers of %d bytes at offset %#x, want %d at least", d.name, ErrDamaged, at.size, at.rva, l.size)
	}
	b, err := d.part(uint64(at.rva), uint64(l.size), "the registers")
	if err != nil {
		return nil, nil, err
	}
	regs := &unwind.Registers{PC: l.value(b, l.pc)}
	list := make([]Register, 0, len(l.regs))
	for _, r := range l.regs {
		v := l.value(b, r.off)
		list = append(list, Register{r.name, v})
		if r.reg >= 0 {
			regs.Set(r.reg, v)
		}
	}
	return regs, list, nil
}

// minidumpThread says which thread a name is for.
type minidumpThread struct {
	thread *Thread
	tid    uint32
}

// threads reads MINIDUMP_THREAD_LIST: of each thread 4 numbers, the TEB, its stack and where its
// registers are.
func (d *minidump) threads() error {
	b, count, err := d.list(streamThreads, minidumpThreadSize, maxMinidumpThreads, "the list of threads")
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	for ; count > 0; b, count = b[minidumpThreadSize:], count-1 {
		t := &Thread{TID: uint64(le.Uint32(b))}
		d.addMemory(le.Uint64(b[24:]), location{le.Uint32(b[32:]), le.Uint32(b[36:])})
		if t.regs, t.Registers, err = d.registers(locationAt(b[40:])); err != nil {
			d.report.problem("thread %d: %w", t.TID, err)
		}
		d.report.Threads = append(d.report.Threads, t)
		d.unnamed = append(d.unnamed, minidumpThread{t, le.Uint32(b)})
	}
	return nil
}

// threadNames reads MINIDUMP_THREAD_NAME_LIST: a number and a 64-bit offset each.
func (d *minidump) threadNames() error {
	b, count, err := d.list(streamThreadNames, 12, maxMinidumpThreads, "the names of threads")
	if err != nil {
		return err
	}
	names := map[uint32]string{}
	for ; count > 0; b, count = b[12:], count-1 {
		if rva := binary.LittleEndian.Uint64(b[4:]); rva <= 1<<32-1 {
			names[binary.LittleEndian.Uint32(b)] = d.text(uint32(rva))
		}
	}
	for _, t := range d.unnamed {
		t.thread.Name = names[t.tid]
	}
	return nil
}

// exception reads MINIDUMP_EXCEPTION_STREAM: which thread, the record, and the registers at that
// moment, which are not those of the thread where a handler ran on it.
func (d *minidump) exception() error {
	b, err := d.stream(streamException, "the exception")
	if err != nil || b == nil {
		return err
	}
	if len(b) < 168 {
		return fmt.Errorf("crash: %s: %w: an exception of %d bytes", d.name, ErrDamaged, len(b))
	}
	le := binary.LittleEndian
	tid, code, flags, addr := uint64(le.Uint32(b)), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint64(b[24:])
	count := min(le.Uint32(b[32:]), 15)
	var info []uint64
	for k := range count {
		info = append(info, le.Uint64(b[40+8*k:]))
	}
	d.report.Reason = d.reason(code, flags, addr, info)
	d.report.Reason.Details = append(d.report.Reason.Details, detailsOfOS(d.report.OS, code, info)...)
	for _, t := range d.report.Threads {
		if t.TID != tid {
			continue
		}
		t.Crashed = true
		regs, list, err := d.registers(locationAt(b[160:]))
		if err == nil && regs != nil {
			t.regs, t.Registers = regs, list
		}
		return err
	}
	return fmt.Errorf("crash: %s: %w: the exception is of thread %d, which is not listed", d.name, ErrDamaged, tid)
}

// crashedFirst moves the crashed threads to the front.
func (r *Report) crashedFirst() {
	var first, others []*Thread
	for _, t := range r.Threads {
		if t.Crashed {
			first = append(first, t)
		} else {
			others = append(others, t)
		}
	}
	r.Threads = append(first, others...)
}
