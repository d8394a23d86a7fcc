package crash

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// MachOCore is a core file of macOS.
const MachOCore Format = "mach-o-core"

// What is read of Mach-O (mach-o/loader.h, mach/machine.h, mach/thread_status.h).
const (
	machMagic64     = 0xfeedfacf
	machTypeCore    = 4
	machCPUAMD64    = 0x01000007
	machCPUARM64    = 0x0100000c
	machSegment64   = 0x19
	machThread      = 4
	machHeaderSize  = 32
	machStateAMD64  = 4 // x86_THREAD_STATE64
	machStateAny    = 7 // x86_THREAD_STATE: a flavor and a size, and then that
	machStateARM64  = 6 // ARM_THREAD_STATE64
	machExcAMD64    = 6 // x86_EXCEPTION_STATE64
	machExcARM64    = 7 // ARM_EXCEPTION_STATE64
	maxMachCommands = 1 << 20
	maxMachHeader   = 1 << 20 // of one image: its header and load commands
)

// isMachOCore says whether a file is a 64-bit Mach-O core.
func isMachOCore(start []byte) bool {
	return len(start) >= machHeaderSize && binary.LittleEndian.Uint32(start) == machMagic64 && binary.LittleEndian.Uint32(start[12:]) == machTypeCore
}

// readMachOCore reads a core: its segments are memory, and each LC_THREAD is a thread.
func readMachOCore(name string, in io.ReaderAt, size int64) (*Report, error) {
	s := &source{name, in, uint64(size)}
	head, err := s.part(0, machHeaderSize, "the header")
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	r := &Report{Format: MachOCore, OS: "macos"}
	switch cpu := le.Uint32(head[4:]); cpu {
	case machCPUAMD64:
		r.Arch, r.arch = "amd64", unwind.AMD64
	case machCPUARM64:
		r.Arch, r.arch = "arm64", unwind.ARM64
	default:
		return nil, fmt.Errorf("crash: %s: %w: a core of processor %#x", name, ErrUnknownFormat, cpu)
	}
	commands, err := s.part(machHeaderSize, uint64(le.Uint32(head[20:])), "the load commands")
	if err != nil {
		return nil, err
	}
	var parts []stored
	for n := min(le.Uint32(head[16:]), maxMachCommands); n > 0; n-- {
		if len(commands) < 8 {
			r.problem("%s: %d load commands are missing", name, n)
			break
		}
		kind, length := le.Uint32(commands), le.Uint32(commands[4:])
		if length < 8 || uint64(length) > uint64(len(commands)) {
			r.problem("%s: a load command of %d bytes", name, length)
			break
		}
		body := commands[:length]
		commands = commands[length:]
		switch {
		case kind == machSegment64 && length >= 72:
			addr, mem, off, file := le.Uint64(body[24:]), le.Uint64(body[32:]), le.Uint64(body[40:]), le.Uint64(body[48:])
			if addr+mem < addr || addr+file < addr || off+file < off || len(parts) >= maxParts {
				continue
			}
			prot := le.Uint32(body[60:])
			r.maps = append(r.maps, mapping{Range{addr, addr + mem}, prot&4 != 0, prot&2 != 0})
			parts = append(parts, stored{Range{addr, addr + min(mem, file)}, off})
		case kind == machThread && len(r.Threads) < maxThreads:
			r.machThread(body[8:])
		}
	}
	var lost uint64
	memory, lost := newFileMemory(s, parts)
	if lost > 0 {
		r.problem("%s: it is cut off: %d bytes of memory are missing", name, lost)
	}
	r.memory = memory
	r.maps = disjoint(r.maps)
	if len(r.Threads) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no thread", name, ErrDamaged)
	}
	r.machImages()
	return r, nil
}

// machThread reads the states of one thread: a flavor, the number of 32-bit words, and these.
func (r *Report) machThread(b []byte) {
	le := binary.LittleEndian
	t := &Thread{TID: uint64(len(r.Threads))}
	for len(b) >= 8 {
		flavor, count := le.Uint32(b), uint64(le.Uint32(b[4:]))
		b = b[8:]
		if count*4 > uint64(len(b)) {
			break
		}
		state := b[:count*4]
		b = b[count*4:]
		if flavor == machStateAny && r.arch == unwind.AMD64 && len(state) >= 8 && le.Uint32(state) == machStateAMD64 {
			flavor, state = machStateAMD64, state[8:]
		}
		switch {
		case r.arch == unwind.AMD64 && flavor == machStateAMD64 && len(state) >= 17*8:
			t.machRegisters(state, machAMD64)
		case r.arch == unwind.ARM64 && flavor == machStateARM64 && len(state) >= 33*8:
			t.machRegisters(state, machARM64)
		case r.arch == unwind.AMD64 && flavor == machExcAMD64 && len(state) >= 16:
			r.machFault(t, uint64(le.Uint16(state)), le.Uint64(state[8:]), state[0] != 0 || state[1] != 0)
		case r.arch == unwind.ARM64 && flavor == machExcARM64 && len(state) >= 16:
			esr := le.Uint32(state[8:])
			// The class of the exception says whether it is a fault: aborts and the like; 0x15 is a system call.
			class := esr >> 26
			r.machFault(t, uint64(class), le.Uint64(state), class == 0x20 || class == 0x21 || class == 0x24 || class == 0x25 || class == 0x3c || class == 0x22 || class == 0x26)
		}
	}
	r.Threads = append(r.Threads, t)
}

// machFault notes the exception of a thread. Threads that did not fault have an old one, so only
// the first thread's counts: the one that writes cores puts it there.
func (r *Report) machFault(t *Thread, trap, addr uint64, fault bool) {
	if len(r.Threads) > 0 || !fault {
		return
	}
	t.Crashed = true
	r.Reason = Reason{Signal: "exception", Code: fmt.Sprintf("trap %d", trap), Address: addr, Has: true}
	r.Reason.text()
}

// machAMD64 is the order of x86_THREAD_STATE64, and machARM64 of ARM_THREAD_STATE64, with DWARF
// numbers; -1 is the PC.
var (
	machAMD64 = []contextRegister{
		{"rax", 0, 0}, {"rbx", 8, 3}, {"rcx", 16, 2}, {"rdx", 24, 1}, {"rdi", 32, 5}, {"rsi", 40, 4}, {"rbp", 48, 6}, {"rsp", 56, 7},
		{"r8", 64, 8}, {"r9", 72, 9}, {"r10", 80, 10}, {"r11", 88, 11}, {"r12", 96, 12}, {"r13", 104, 13}, {"r14", 112, 14}, {"r15", 120, 15}, {"rip", 128, -1},
	}
	machARM64 = func() []contextRegister {
		var out []contextRegister
		for n := range 31 {
			out = append(out, contextRegister{fmt.Sprintf("x%d", n), 8 * n, n})
		}
		return append(out, contextRegister{"sp", 248, 31}, contextRegister{"pc", 256, -1})
	}()
)

func (t *Thread) machRegisters(state []byte, order []contextRegister) {
	t.regs, t.Registers = &unwind.Registers{}, nil
	for _, reg := range order {
		v := binary.LittleEndian.Uint64(state[reg.off:])
		t.Registers = append(t.Registers, Register{reg.name, v})
		if reg.reg < 0 {
			t.regs.PC = v
		} else {
			t.regs.Set(reg.reg, v)
		}
	}
}

// machImages finds images in memory: a header stands where a mapping of code begins.
func (r *Report) machImages() {
	for _, m := range r.maps {
		var head [machHeaderSize]byte
		if n, _ := r.memory.ReadMemory(m.Start, head[:]); n < len(head) || len(r.Images) >= maxImages {
			continue
		}
		le := binary.LittleEndian
		kind, size := le.Uint32(head[12:]), uint64(le.Uint32(head[20:]))
		if le.Uint32(head[:]) != machMagic64 || kind != 2 && kind != 6 && kind != 7 && kind != 8 || size > maxMachHeader {
			continue // programs, libraries, the loader, bundles
		}
		data := make([]byte, machHeaderSize+size)
		if n, _ := r.memory.ReadMemory(m.Start, data); n < len(data) {
			continue
		}
		file, err := object.Parse("an image in memory", data)
		if err != nil {
			continue
		}
		im := &Image{ID: file.ID(), Path: file.SoName(), Load: m.Start, Arch: file.ArchName()}
		if kind == 2 {
			if r.Process.Path = im.Path; im.Path == "" {
				im.Path = "(program)"
			}
		} else if kind == 7 && im.Path == "" {
			im.Path = "/usr/lib/dyld"
		}
		for _, seg := range file.Segments() {
			if seg.Name == "__TEXT" { // what of the image holds code
				im.Size = seg.MemSize
			}
		}
		_ = file.Close() // nothing is behind it
		r.Images = append(r.Images, im)
	}
	r.sortImages()
}
