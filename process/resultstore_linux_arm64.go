package process

// storeOfResult follows straight code to STR (immediate, unsigned offset) of w0, or of a register that it was moved to. Compilers put other
// instructions in front of it, so it isn't left out: the thread stores the same once more.
func (host) storeOfResult(code []byte, r *Regs) (addr uint64, size int, ok bool) {
	var changed [32]bool
	copies := [32]bool{0: true}
	for at := 0; at+4 <= len(code); at += 4 {
		w := word(code, at)
		to, base, from := w&31, w>>5&31, w>>16&31
		if w&0xffc0_0000 == 0xb900_0000 && copies[to] && base != 31 { // str w, [base, #imm]
			return r.Regs[base] + uint64(w>>10&0xfff)*4, 0, !changed[base]
		}
		if w&0x7fe0_ffe0 == 0x2a00_03e0 { // mov to, from
			copies[to], changed[to] = copies[from], true
			continue
		}
		dests, known := destinations(w)
		if !known {
			break
		}
		for _, d := range dests {
			copies[d], changed[d] = false, true
		}
	}
	return 0, 0, false
}

// destinations are the general registers that an instruction changes (Arm ARM, C4.1). Known are those of compilers' straight code, without
// changes of a base.
func destinations(w uint32) (regs []uint32, known bool) {
	to, second := w&31, w>>10&31
	switch group := w >> 25 & 15; {
	case group>>1 == 4, group&7 == 5: // data processing, with a constant or with registers
		return []uint32{to}, true
	case group == 7 || group == 15: // FP and SIMD, which may go to a general one
		return []uint32{to}, true
	case group&5 != 4: // branches, system, SVE, SME
		return nil, false
	}
	const vector, isLoad = 1 << 26, 1 << 22
	if w>>27&7 == 5 && w>>23&7 == 2 { // a pair at an offset
		if w&vector != 0 || w&isLoad == 0 {
			return nil, true
		}
		return []uint32{to, second}, true
	}
	if w>>27&7 == 7 && w>>24&1 == 1 { // one register at an unsigned offset
		if w&vector != 0 || w>>22&3 == 0 {
			return nil, true
		}
		return []uint32{to}, true
	}
	return nil, false
}
