package dwarf

// indexed reads number k of size bytes in a table that starts at base of data.
func indexed(data []byte, base, k uint64, size int, big bool) (uint64, bool) {
	n := uint64(len(data))
	// k is below n in every table that data can hold, so the product cannot wrap.
	if base > n || k >= n || (k+1)*uint64(size) > n-base {
		return 0, false
	}
	return fixed(data[base+k*uint64(size):], size, big)
}

// address turns the value of an attribute of class address into an address
// (DWARF 5 §7.5.5). It is false for other classes.
func (u *unit) address(r *root, form uint8, v uint64) (uint64, bool) {
	switch form {
	case formAddr:
		return v, true
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4:
		return u.indexedAddress(r, v)
	}
	return 0, false
}

// indexedAddress returns entry k of the unit's part of .debug_addr (DWARF 5 §7.27).
func (u *unit) indexedAddress(r *root, k uint64) (uint64, bool) {
	return indexed(u.source.addr.data, r.addrBase, k, int(u.shape.addr), u.source.big)
}

// string turns the value of an attribute of class string into a String, 0 for
// other classes and for what cannot be found.
func (u *unit) string(r *root, form uint8, v uint64) String {
	s := u.source
	switch form {
	case formStrp:
		return s.string(partStr, v)
	case formString:
		part := partInfo
		if u.section == &s.types {
			part = partTypes
		}
		return s.string(part, u.offset+v)
	case formLineStrp:
		return s.string(partLineStr, v)
	case formStrpSup:
		return altString(v)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
		at, ok := indexed(s.strOffsets.data, r.strOffsetsBase, v, int(u.shape.offset), s.big)
		if !ok {
			return 0
		}
		return s.string(partStr, at)
	}
	return 0
}

// altString names a string of the supplementary file.
func altString(offset uint64) String {
	alt := source{role: roleAlt}
	return alt.string(partStr, offset)
}

// isAddress says whether a form is of class address.
func isAddress(form uint8) bool {
	switch form {
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4:
		return true
	}
	return false
}
