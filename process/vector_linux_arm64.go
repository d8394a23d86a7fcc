package process

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Notes of include/uapi/linux/elf.h.
const (
	noteFPSIMD    = 2     // NT_PRFPREG: struct user_fpsimd_state
	noteSVE       = 0x405 // NT_ARM_SVE: struct user_sve_header, and either kind of state
	noteStreaming = 0x40b // NT_ARM_SSVE
	noteZA        = 0x40c // NT_ARM_ZA
	noteGCS       = 0x410 // NT_ARM_GCS: features_enabled comes first
)

// struct user_sve_header (arch/arm64/include/uapi/asm/ptrace.h), and struct user_fpsimd_state.
const (
	sveSize       = 0  // of all that is there
	sveVL         = 8  // vector length in bytes, 16 bits
	sveFlags      = 12 // 16 bits
	sveHeader     = 16
	sveLive       = 1 // SVE_PT_REGS_SVE: the registers are more than FPSIMD's
	maxSVEVL      = 256
	fpsimdStatus  = 512 // fpsr, fpcr, behind 32 registers
	sizeUserFP    = 528
	vectorTag     = 8 // in front of what ptrace gives: the note
	gcsEnabled    = 1 // PR_SHADOW_STACK_ENABLE
	sizeGCSReg    = 24
	sizeSVERecord = 16 // struct sve_context
)

var errVector = errors.New("unexpected vector state")

// getVector reads the vector state: a note's number in 8 bytes, and what ptrace gives for it. Where there is SVE its note has both kinds of
// state, and says which one is live. What a signal frame can't bring back is refused.
func (host) getVector(tid int) ([]byte, error) {
	if gcs, err := registerNote(tid, noteGCS); err == nil && len(gcs) >= sizeGCSReg && binary.LittleEndian.Uint64(gcs)&gcsEnabled != 0 {
		return nil, fmt.Errorf("%w: it has a guarded control stack, which signal frames made from outside would violate", errVector)
	}
	for _, note := range []uintptr{noteZA, noteStreaming} {
		if state, err := registerNote(tid, note); err == nil && hasMatrix(note, state) {
			return nil, fmt.Errorf("%w: it uses SME", errVector)
		}
	}
	note := uintptr(noteSVE)
	state, err := registerNote(tid, note)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EIO) {
		note = noteFPSIMD
		state, err = registerNote(tid, note)
	}
	if err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(note)), state...), nil
}

// hasMatrix says whether ZA has a content, or the thread is in streaming mode.
func hasMatrix(note uintptr, state []byte) bool {
	if len(state) < sveHeader {
		return false
	}
	if note == noteZA {
		return len(state) > sveHeader
	}
	return binary.LittleEndian.Uint16(state[sveFlags:])&sveLive != 0 && len(state) > sveHeader
}

// setVector writes what getVector has read.
func (host) setVector(tid int, vector []byte) error {
	if len(vector) <= vectorTag {
		return unix.EINVAL
	}
	return setRegisterNote(tid, uintptr(binary.LittleEndian.Uint64(vector)), vector[vectorTag:])
}

// frameRecordsOf makes a signal frame's records of what getVector has read.
func frameRecordsOf(vector []byte) ([]byte, error) {
	if len(vector) < vectorTag {
		return nil, fmt.Errorf("%w: %d bytes", errVector, len(vector))
	}
	note, state := binary.LittleEndian.Uint64(vector), vector[vectorTag:]
	if note == noteFPSIMD {
		return fpsimdRecord(state)
	}
	if len(state) < sveHeader {
		return nil, fmt.Errorf("%w: %d bytes", errVector, len(state))
	}
	if binary.LittleEndian.Uint16(state[sveFlags:])&sveLive == 0 {
		return fpsimdRecord(state[sveHeader:])
	}
	return sveRecords(state)
}

// fpsimdRecord is struct fpsimd_context: the status and control registers come first.
func fpsimdRecord(state []byte) ([]byte, error) {
	if len(state) < fpsimdStatus+8 {
		return nil, fmt.Errorf("%w: %d bytes", errVector, len(state))
	}
	out := clearRecords()
	copy(out[8:], state[fpsimdStatus:fpsimdStatus+8])
	copy(out[16:], state[:fpsimdStatus])
	return out, nil
}

// sveRecords are the record of FPSIMD, whose registers are the low parts of SVE's, and struct sve_context, which has the registers as
// ptrace has them (Documentation/arch/arm64/sve.rst).
func sveRecords(state []byte) ([]byte, error) {
	le := binary.LittleEndian
	vl := int(le.Uint16(state[sveVL:]))
	if vl < 16 || vl > maxSVEVL || vl%16 != 0 {
		return nil, fmt.Errorf("%w: vectors of %d bytes", errVector, vl)
	}
	regs := 32*vl + 16*(vl/8) + vl/8 // Z, P, FFR
	status := (sveHeader + regs + 15) &^ 15
	if len(state) < status+8 {
		return nil, fmt.Errorf("%w: %d bytes for vectors of %d", errVector, len(state), vl)
	}
	fp := clearRecords()
	copy(fp[8:], state[status:status+8])
	for i := range 32 {
		copy(fp[16+16*i:][:16], state[sveHeader+vl*i:])
	}
	size := (sizeSVERecord + regs + 15) &^ 15
	if len(fp)+size+sizeEnd > maxRecords {
		return nil, fmt.Errorf("%w: vectors of %d bytes are too long for a signal frame", errVector, vl)
	}
	record := make([]byte, size)
	le.PutUint32(record[0:], magicSVE)
	le.PutUint32(record[4:], uint32(size))
	le.PutUint16(record[8:], uint16(vl))
	copy(record[sizeSVERecord:], state[sveHeader:sveHeader+regs])
	return append(fp, record...), nil
}
