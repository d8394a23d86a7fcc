package arm64

import "github.com/callreel/callreel/isa/arm64"

// A system call keeps the 128 bits of vector registers that all processors have, and forgets the rest of what SVE has: the registers'
// upper bits, the predicates and the first-fault register (Documentation/arch/arm64/sve.rst, "System calls"). And it ends streaming
// mode (sme.rst). At a function's entry there may be arguments in all of these, at its return results. So where the processor has them,
// the slow path keeps them on the stack, as long as its vectors are, before it makes system calls.

// vectorRows is how much place they take, in vector registers: the predicates and FFR, 17 eighths of one, and 32.
const vectorRows = 3 + 32

// FPSR is changed by the beginning of streaming mode.
const smstart = 0xD503437F // smstart sm

// hasSVE and hasSME say whether there may be anything in these. Go's compiler uses neither, and its functions keep no vector register; nor has the
// stack room, on which the slow path runs there.
func (s *slowPath) hasSVE() bool { return s.cfg.Go == nil && s.cfg.HWCap&hwcapSVE != 0 }
func (s *slowPath) hasSME() bool { return s.cfg.Go == nil && s.cfg.HWCap2&hwcap2SME != 0 }

// svcr is the register that says whether the thread is in streaming mode, in bit 0.
const svcr arm64.SysReg = 3<<14 | 3<<11 | 4<<7 | 2<<3 | 2

// saveVectors appends the keeping of them. x0 and the stack pointer are changed.
func (s *slowPath) saveVectors() {
	if !s.hasSVE() && !s.hasSME() {
		return
	}
	none, whole := s.NewLabel(), s.NewLabel()
	if s.hasSME() {
		s.Mrs(x0, svcr)
		s.Store(8, x0, arm64.At(rFrame, frameSVCR))
		s.Mrs(x1, arm64.FPSR)
		s.Store(8, x1, arm64.At(rFrame, frameFPSR))
		if !s.hasSVE() {
			s.Tbz(x0, 0, none)
		}
	}
	for range 3 {
		s.addVectors(-vectorRows / 3)
	}
	s.addVectors(-vectorRows % 3)
	for p := uint32(0); p < 16; p++ {
		s.Word(0xE5800000 | p>>3<<16 | p&7<<10 | 31<<5 | p) // str p, [sp, #p, mul vl]
	}
	if s.hasSVE() {
		if s.hasSME() {
			s.Tbnz(x0, 0, whole) // there is no FFR in streaming mode
		}
		s.Word(0x2519F000)                 // rdffr p0.b
		s.Word(0xE5800000 | 2<<16 | 31<<5) // str p0, [sp, #16, mul vl]
		s.Word(0x85800000 | 0<<16 | 31<<5) // ldr p0, [sp]
		s.Place(whole)
	}
	for z := uint32(0); z < 32; z++ {
		s.Word(0xE5804000 | (z+3)>>3<<16 | (z+3)&7<<10 | 31<<5 | z) // str z, [sp, #z+3, mul vl]
	}
	s.Place(none)
}

// addVectors appends addvl sp, sp, #n.
func (s *slowPath) addVectors(n int) { s.Word(0x04205000 | 31<<16 | uint32(n)&0x3F<<5 | 31) }

// restoreVectors appends the giving back. x0 and x1 are clobbered.
func (s *slowPath) restoreVectors() {
	if !s.hasSVE() && !s.hasSME() {
		return
	}
	none, still, whole := s.NewLabel(), s.NewLabel(), s.NewLabel()
	if s.hasSME() {
		s.Load(8, x0, arm64.At(rFrame, frameSVCR))
		if s.hasSVE() {
			s.Tbz(x0, 0, still)
		} else {
			s.Tbz(x0, 0, none)
		}
		s.Word(smstart)
		s.Place(still)
	}
	if s.hasSVE() {
		if s.hasSME() {
			s.Tbnz(x0, 0, whole)
		}
		s.Word(0x85800000 | 2<<16 | 31<<5) // ldr p0, [sp, #16, mul vl]
		s.Word(0x25289000)                 // wrffr p0.b
		s.Place(whole)
	}
	for p := uint32(0); p < 16; p++ {
		s.Word(0x85800000 | p>>3<<16 | p&7<<10 | 31<<5 | p)
	}
	for z := uint32(0); z < 32; z++ {
		s.Word(0x85804000 | (z+3)>>3<<16 | (z+3)&7<<10 | 31<<5 | z)
	}
	if s.hasSME() {
		s.Load(8, x1, arm64.At(rFrame, frameFPSR))
		s.Msr(arm64.FPSR, x1)
	}
	s.MovSP(sp, rFrame)
	s.Place(none)
}
