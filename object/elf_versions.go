package object

import "debug/elf"

// symbolVersions gives the dynamic symbols' versions (gABI supplement, LSB Core
// 5.0 §10.7): one 16-bit index a symbol, and a name an index.
type symbolVersions struct {
	indices []byte
	names   map[uint16]string
	entries int // how many entries of chains have been followed
}

// versionHidden marks a version that is not the default one.
const versionHidden = 0x8000

// name returns the version of symbol k, "" for the unversioned.
func (v *symbolVersions) name(e *elfFile, k int) string {
	if len(v.indices) < 2*(k+1) {
		return ""
	}
	return v.names[e.ByteOrder.Uint16(v.indices[2*k:])&^versionHidden]
}

// sectionVersions finds the versions of the symbol table in section k.
func (e *elfFile) sectionVersions(k int) (symbolVersions, error) {
	v := symbolVersions{names: make(map[uint16]string)}
	for n := range e.sections {
		s := &e.sections[n]
		var err error
		switch elf.SectionType(s.Type) {
		case elf.SHT_GNU_VERSYM:
			if s.Link == uint32(k) {
				v.indices, err = e.sectionBytes(s)
			}
		case elf.SHT_GNU_VERDEF, elf.SHT_GNU_VERNEED:
			err = e.addVersionSection(&v, s)
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

func (e *elfFile) addVersionSection(v *symbolVersions, s *Section) error {
	raw, err := e.sectionBytes(s)
	if err != nil {
		return err
	}
	strs, err := e.linkedStrings(s)
	if err != nil {
		return err
	}
	if elf.SectionType(s.Type) == elf.SHT_GNU_VERDEF {
		e.addDefinedVersions(v, raw, strs)
	} else {
		e.addNeededVersions(v, raw, strs)
	}
	return nil
}

// segmentVersions finds the versions through the dynamic table.
func (e *elfFile) segmentVersions(symbols uint64, strs *stringTable) symbolVersions {
	v := symbolVersions{names: make(map[uint16]string)}
	addr, ok := e.dyn(elf.DT_VERSYM)
	if !ok {
		return v
	}
	var err error
	if v.indices, err = e.ReadAddr(addr, 2*symbols); err != nil {
		return v
	}
	if addr, ok := e.dyn(elf.DT_VERDEF); ok {
		raw := e.versionTable(addr)
		e.addDefinedVersions(&v, raw, strs)
	}
	if addr, ok := e.dyn(elf.DT_VERNEED); ok {
		raw := e.versionTable(addr)
		e.addNeededVersions(&v, raw, strs)
	}
	return v
}

// maxVersionTable bounds a table of versions whose size nothing states. The C library,
// which has most, has a few hundred of 28 bytes.
const maxVersionTable = 1 << 20

// versionTable returns the bytes at an address, as many as a table may have.
func (e *elfFile) versionTable(addr uint64) []byte {
	off, available := e.fromAddr(addr)
	raw, err := e.slice(off, min(available, maxVersionTable))
	if err != nil {
		return nil // names without their versions are worth having
	}
	return raw
}

// addDefinedVersions follows the chain of Verdef entries; the name of each stands
// in its first Verdaux. The first entry names the file itself and is no version.
func (e *elfFile) addDefinedVersions(v *symbolVersions, raw []byte, strs *stringTable) {
	const size, auxSize = 20, 8
	const flagBase = 1
	o := e.ByteOrder
	v.walkChain(raw, size, func(b []byte) (next uint32) {
		aux := uint64(o.Uint32(b[12:]))
		if o.Uint16(b[2:])&flagBase == 0 && aux+auxSize <= uint64(len(b)) {
			if name, ok := strs.at(o.Uint32(b[aux:])); ok {
				v.names[o.Uint16(b[4:])&^versionHidden] = name
			}
		}
		return o.Uint32(b[16:])
	})
}

// addNeededVersions follows the chain of Verneed entries, each of which has a
// chain of Vernaux entries.
func (e *elfFile) addNeededVersions(v *symbolVersions, raw []byte, strs *stringTable) {
	const size, auxSize = 16, 16
	o := e.ByteOrder
	v.walkChain(raw, size, func(b []byte) (next uint32) {
		if aux := uint64(o.Uint32(b[8:])); aux <= uint64(len(b)) {
			v.walkChain(b[aux:], auxSize, func(b []byte) (next uint32) {
				if name, ok := strs.at(o.Uint32(b[8:])); ok {
					v.names[o.Uint16(b[6:])&^versionHidden] = name
				}
				return o.Uint32(b[12:])
			})
		}
		return o.Uint32(b[12:])
	})
}

// maxVersions bounds all chains together: an index has 15 bits. Chains of chains
// may otherwise be made to overlap.
const maxVersions = 1 << 15

// walkChain calls visit with the bytes from each entry on and goes forward by what
// it returns, until that is 0 or the bytes end.
func (v *symbolVersions) walkChain(b []byte, size int, visit func([]byte) (next uint32)) {
	for ; len(b) >= size && v.entries < maxVersions; v.entries++ {
		next := visit(b)
		if next == 0 || uint64(next) > uint64(len(b)) {
			return
		}
		b = b[next:]
	}
}
