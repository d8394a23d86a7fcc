package cfi

import (
	"fmt"
	"strings"

	"github.com/callreel/callreel/internal/ehtable"
)

// cie reads a CIE behind its ID (DWARF 5 §6.4.1; LSB Core 5.0 §10.6.1.1).
func (s *source) cie(r *record) (*CIE, error) {
	c := &r.body
	cie := &CIE{
		Offset: r.offset, source: s, addrSize: s.bases.Size,
		fdeEncoding: ehtable.AbsPtr, lsdaEncoding: ehtable.Omit,
	}
	version, ok := c.u8()
	if !ok {
		return nil, errTruncated
	}
	if version != 1 && version != 3 && version != 4 {
		return nil, fmt.Errorf("CIE version %d, want 1, 3 or 4", version)
	}
	cie.Version = version
	if cie.Augmentation, ok = c.text(); !ok {
		return nil, fmt.Errorf("CIE augmentation string has no end")
	}
	if version == 4 {
		if err := cie.sizes(c); err != nil {
			return nil, err
		}
	}
	rest := cie.Augmentation
	if after, found := strings.CutPrefix(rest, "eh"); found {
		// gcc 2 put the address of its exception table here.
		rest = after
		if _, ok = c.word(cie.addrSize); !ok {
			return nil, errTruncated
		}
	}
	if err := cie.factors(c); err != nil {
		return nil, err
	}
	if err := cie.augment(c, rest); err != nil {
		return nil, err
	}
	cie.program = span{uint64(c.at), uint64(len(c.data))}
	return cie, nil
}

// sizes reads the fields that version 4 added.
func (cie *CIE) sizes(c *cursor) error {
	addr, ok1 := c.u8()
	segment, ok2 := c.u8()
	if !ok1 || !ok2 {
		return errTruncated
	}
	if addr != 4 && addr != 8 || segment != 0 {
		return fmt.Errorf("CIE: address size %d and segment size %d, want 4 or 8 and 0", addr, segment)
	}
	cie.addrSize = int(addr)
	return nil
}

// factors reads the alignment factors and the return address column.
func (cie *CIE) factors(c *cursor) error {
	var ok1, ok2, ok3 bool
	cie.CodeAlign, ok1 = c.uleb()
	cie.DataAlign, ok2 = c.sleb()
	var reg uint64
	if cie.Version == 1 {
		var b uint8
		b, ok3 = c.u8()
		reg = uint64(b)
	} else {
		reg, ok3 = c.uleb()
	}
	if !ok1 || !ok2 || !ok3 {
		return errTruncated
	}
	if reg > maxRegister {
		return fmt.Errorf("CIE: return address register %d, want at most %d", reg, maxRegister)
	}
	cie.RAReg = uint32(reg)
	return nil
}

// augment reads the augmentation data that the string announces. With 'z' an
// unknown letter ends it: the data's length still leads to the instructions, yet
// an encoding of addresses may be among what is skipped, so the CIE is refused.
func (cie *CIE) augment(c *cursor, letters string) error {
	if letters == "" {
		return nil
	}
	if letters[0] != 'z' {
		if letters == "S" || letters == "B" {
			cie.SignalFrame, cie.BKey = letters == "S", letters == "B"
			return nil
		}
		return fmt.Errorf("CIE: unknown augmentation %q", cie.Augmentation)
	}
	cie.sized = true
	size, ok := c.uleb()
	aug, fits := c.bytes(size)
	if !ok || !fits {
		return fmt.Errorf("CIE augmentation: %w", errTruncated)
	}
	// Its own cursor keeps the section's offsets, for pc-relative pointers.
	a := cursor{data: c.data[:c.at], at: c.at - len(aug), order: c.order}
	for _, letter := range letters[1:] {
		switch letter {
		case 'R':
			cie.fdeEncoding, ok = a.encoding()
		case 'L':
			cie.lsdaEncoding, ok = a.encoding()
		case 'P':
			ok = cie.personality(&a)
		case 'S':
			cie.SignalFrame = true
		case 'B':
			cie.BKey = true
		case 'G': // AArch64: the frame is tagged by MTE; changes no rule
		default:
			return fmt.Errorf("CIE: unknown augmentation %q", cie.Augmentation)
		}
		if !ok {
			return fmt.Errorf("CIE augmentation %q: %w", cie.Augmentation, errTruncated)
		}
	}
	if cie.fdeEncoding == ehtable.Omit || cie.fdeEncoding&ehtable.Indirect != 0 {
		return fmt.Errorf("CIE: pointer encoding %#x of FDE addresses cannot be", cie.fdeEncoding)
	}
	return nil
}

// personality reads the encoding of the personality routine's address and it.
func (cie *CIE) personality(a *cursor) bool {
	enc, ok := a.encoding()
	if !ok || enc == ehtable.Omit {
		return ok
	}
	b := cie.source.bases
	b.Size = cie.addrSize
	cie.PersonalityIndirect = enc&ehtable.Indirect != 0
	cie.Personality, ok = a.pointer(enc&^ehtable.Indirect, &b)
	return ok
}
