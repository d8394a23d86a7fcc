package crash

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/unwind"
)

const (
	// scanCalls is how far a scan goes for a return address that follows a call, in words.
	scanCalls = 1024
	// scanBlind is how far it goes where the code isn't at hand: there, any word that leads into
	// an image will do, and the further away the less it means.
	scanBlind = 40
)

// scan looks on the stack for the next return address, and makes next the registers of a caller
// there. What was found so may be stale: a call that is over has left it.
func (w *walking) scan(next *unwind.Snapshot, last walked, fp uint64, hasFP bool) bool {
	a := w.report.arch
	size := uint64(8)
	if a == unwind.I386 {
		size = 4
	}
	sp := last.SP
	if sp&(size-1) != 0 {
		sp += size - sp&(size-1)
	}
	if m, ok := w.images.Mapping(sp); !ok || !m.Write {
		return false
	}
	stack := w.bytes(sp, int(scanCalls*size))
	for k := uint64(0); (k+1)*size <= uint64(len(stack)) && w.scanned > 0; k++ {
		w.scanned--
		v := wordAt(stack, k, size)
		v &= w.report.strip()
		if !w.looksLikeReturn(v, k) {
			continue
		}
		var regs unwind.Registers
		regs.PC = v
		caller := sp + (k+1)*size
		regs.Set(a.SP(), caller)
		// The word before is the caller's frame pointer where there is a frame record.
		if k > 0 {
			if v := wordAt(stack, k-1, size); v > caller && v < sp+1<<20 && v&(size-1) == 0 {
				fp, hasFP = v, true
			}
		}
		if hasFP && fp >= caller {
			regs.Set(a.FP(), fp)
		}
		*next = unwind.Snapshot{Regs: regs, Memory: w, Frozen: true, Return: true}
		return true
	}
	return false
}

func wordAt(stack []byte, k, size uint64) uint64 {
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(stack[k*4:]))
	}
	return binary.LittleEndian.Uint64(stack[k*8:])
}

// looksLikeReturn says whether an address lies in an image's code, behind a call where the code
// is at hand.
func (w *walking) looksLikeReturn(addr, distance uint64) bool {
	if addr < 4096 || w.report.arch == unwind.ARM64 && addr&3 != 0 {
		return false
	}
	m, ok := w.images.Mapping(addr - 1)
	if !ok || !m.Exec || w.report.image(addr-1) == nil {
		return false
	}
	var buf [10]byte
	for _, n := range [...]int{10, 7, 5, 4, 3, 2} {
		if got, _ := w.ReadMemory(addr-uint64(n), buf[:n]); got == n {
			return followsCall(w.report.arch, buf[:n])
		}
	}
	return distance < scanBlind
}

// followsCall says whether code ends with a call.
func followsCall(a *unwind.Arch, code []byte) bool {
	if a == unwind.ARM64 {
		if len(code) < 4 {
			return false
		}
		// BL, BLR and the BLRA forms that check a signature (Arm ARM C6.2).
		in := binary.LittleEndian.Uint32(code[len(code)-4:])
		return in>>26 == 0x25 || in&0xfffffc1f == 0xd63f0000 || in&0xfefff800 == 0xd63f0800
	}
	var in amd64.Inst
	for n := 2; n <= len(code); n++ {
		tail := code[len(code)-n:]
		// Calls of i386 have the same form, but for prefixes that 64-bit code has alone.
		if a == unwind.I386 && tail[0]&0xf0 == 0x40 {
			continue
		}
		if amd64.DecodeTo(&in, tail) == nil && int(in.Len) == n && (in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) {
			return true
		}
	}
	return false
}

// strip is what of an address is no signature of pointer authentication. Apple's processes have
// addresses of 47 bits, and put signatures behind those.
func (r *Report) strip() uint64 {
	switch {
	case r.arch != unwind.ARM64:
		return 1<<64 - 1
	case r.apple():
		return 1<<47 - 1
	}
	return 1<<48 - 1
}

// apple says whether the report is of one of Apple's systems.
func (r *Report) apple() bool {
	switch r.OS {
	case "macos", "ios", "tvos", "watchos", "visionos":
		return true
	}
	return false
}
