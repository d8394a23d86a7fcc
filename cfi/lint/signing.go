package lint

import "github.com/callreel/callreel/isa/arm64"

var signatureTexts = [...]string{
	unsigned: "ra is not signed", signedA: "ra is signed with the A key", signedB: "ra is signed with the B key",
	signedOff: "ra is signed with a stack pointer that is not the CFA",
}

// String returns the signature in words.
func (s signature) String() string { return signatureTexts[s] }

// signatureOf is how a row says that the return address is signed (DWARF for the Arm 64-bit Architecture §4.4.9).
func signatureOf(r *row, bKey bool) signature {
	switch {
	case !r.RASigned:
		return unsigned
	case bKey:
		return signedB
	}
	return signedA
}

// signing compares how a row says that the return address is signed with how the one that it finds is; nil where that agrees or is not
// known. Where epilogues are left out, so is what is said of a return address that they have authenticated.
func (c *comparison) signing(n *node, r *row, bit int, v value) *issue {
	if int32(bit) != c.p.ra || v.kind != entry || r.Reg(arm64.RASignState).Kind != 0 {
		return nil
	}
	says := signatureOf(r, c.parts[n.part].bKey)
	if says == v.signed {
		return nil
	}
	i := &issue{kind: WrongRA, says: says.String(), truth: v.signed.String(), delta: 1<<43 + int64(says)<<4 + int64(v.signed)}
	if (says == unsigned) != (v.signed == unsigned) {
		i.directive = ".cfi_negate_ra_state"
	} else if v.signed == signedB {
		i.directive = ".cfi_b_key_frame"
	}
	id := c.parts[n.part].nodes[n.addr-c.parts[n.part].start] - 1
	if before := c.before[id]; v.signed == unsigned && before >= 0 && c.nodes[before].addr >= r.Start && c.p.ofEpilogue(&c.nodes[before].inst) && c.exits(id, r) {
		i.kind = WrongEpilogue
	}
	return i
}
