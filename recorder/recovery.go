package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/callreel/callreel/recorder/internal/probe"
)

// recovery is what it takes to undo a recording without the recorder that made it. It stands in the ring memory before
// the first byte of text changes.
//
// Layout, little-endian: magic u64, CRC-32C of what follows u32, version u32, number of arenas u32, of patches u32;
// then per arena base, size of its code (u64 each); then per patch address u64, old bytes [5], new bytes [5], length u8, kind u8 (0, patchIsland or patchHosted),
// level u8, three bytes of zero.
type recovery struct {
	arenas  []span
	patches []probe.Patch
	golang  bool // it is a Go program: not in the record, but in the ring memory's header
}

type span struct{ base, size uint64 }

const (
	recoveryMagic   = 0x79726576_6f636572 // "recovery"
	recoveryVersion = 3
	recoveryHeader  = 24
	recoveryArena   = 16
	recoveryPatch   = 24
	patchIsland     = 1
	patchHosted     = 2
)

// recoverySize is the size of a record.
func recoverySize(arenas, patches int) uint64 {
	return recoveryHeader + uint64(arenas)*recoveryArena + uint64(patches)*recoveryPatch
}

// put writes the record; buf must be large enough.
func (r *recovery) put(buf []byte) error {
	if uint64(len(buf)) < recoverySize(len(r.arenas), len(r.patches)) {
		return fmt.Errorf("callreel: recovery record of %d patches doesn't fit %d bytes", len(r.patches), len(buf))
	}
	le := binary.LittleEndian
	at := recoveryHeader
	for _, a := range r.arenas {
		le.PutUint64(buf[at:], a.base)
		le.PutUint64(buf[at+8:], a.size)
		at += recoveryArena
	}
	for i := range r.patches {
		p := &r.patches[i]
		e := buf[at : at+recoveryPatch]
		clear(e)
		le.PutUint64(e, p.Addr)
		e[18] = byte(len(p.New()))
		switch {
		case p.Island:
			e[19] = patchIsland
		case p.Hosted:
			e[19] = patchHosted
		}
		e[20] = p.Level
		copy(e[8:13], p.Old())
		copy(e[13:18], p.New())
		at += recoveryPatch
	}
	le.PutUint32(buf[12:], recoveryVersion)
	le.PutUint32(buf[16:], uint32(len(r.arenas)))
	le.PutUint32(buf[20:], uint32(len(r.patches)))
	le.PutUint32(buf[8:], crc32.Checksum(buf[12:at], crc32.MakeTable(crc32.Castagnoli)))
	le.PutUint64(buf, recoveryMagic)
	return nil
}

var errNoRecovery = errors.New("no recovery record")

// parseRecovery reads a record that a target had in its memory, so nothing in it is trusted.
func parseRecovery(buf []byte) (*recovery, error) {
	le := binary.LittleEndian
	if len(buf) < recoveryHeader || le.Uint64(buf) != recoveryMagic {
		return nil, errNoRecovery
	}
	if v := le.Uint32(buf[12:]); v != recoveryVersion {
		return nil, fmt.Errorf("recovery record of version %d, this callreel knows %d", v, recoveryVersion)
	}
	na, np := int(le.Uint32(buf[16:])), int(le.Uint32(buf[20:]))
	size := recoverySize(na, np)
	if size > uint64(len(buf)) {
		return nil, fmt.Errorf("recovery record says %d arenas and %d patches, more than its %d bytes hold", na, np, len(buf))
	}
	if sum := crc32.Checksum(buf[12:size], crc32.MakeTable(crc32.Castagnoli)); sum != le.Uint32(buf[8:]) {
		return nil, errors.New("recovery record is damaged (checksum)")
	}
	r := &recovery{arenas: make([]span, 0, na), patches: make([]probe.Patch, 0, np)}
	at := recoveryHeader
	for range na {
		r.arenas = append(r.arenas, span{le.Uint64(buf[at:]), le.Uint64(buf[at+8:])})
		at += recoveryArena
	}
	for range np {
		e := buf[at : at+recoveryPatch]
		n := int(e[18])
		if n == 0 || n > probe.MaxPatch {
			return nil, fmt.Errorf("recovery record has a patch of %d bytes", n)
		}
		p := probe.NewPatch(le.Uint64(e), e[8:8+n], e[13:13+n])
		p.Island, p.Hosted, p.Level = e[19] == patchIsland, e[19] == patchHosted, e[20]
		r.patches = append(r.patches, p)
		at += recoveryPatch
	}
	return r, nil
}

// inArena says whether addr lies in one of the arenas.
func (r *recovery) inArena(addr uint64) bool {
	for _, a := range r.arenas {
		if addr >= a.base && addr-a.base < a.size {
			return true
		}
	}
	return false
}
