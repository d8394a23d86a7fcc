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
// then per arena base, size of its code (u64 each); then per patch address u64, length u8, kind u8 (0, patchIsland or patchHosted), level u8, five bytes of
// zero, old bytes [8], new bytes [8].
type recovery struct {
	arenas  []span
	patches []probe.Patch
	golang  bool // it is a Go program: not in the record, but in the ring memory's header
}

type span struct{ base, size uint64 }

const (
	recoveryMagic   = 0x79726576_6f636572 // "recovery"
	recoveryVersion = 2
	recoveryHeader  = 24
	recoveryArena   = 16
	recoveryPatch   = 32
	maxPatchLen     = 8
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
	for _, p := range r.patches {
		if len(p.Old) != len(p.New) || len(p.New) > maxPatchLen {
			return fmt.Errorf("callreel: patch of %d and %d bytes at %#x", len(p.Old), len(p.New), p.Addr)
		}
		e := buf[at : at+recoveryPatch]
		clear(e)
		le.PutUint64(e, p.Addr)
		e[8] = byte(len(p.New))
		switch {
		case p.Island:
			e[9] = patchIsland
		case p.Hosted:
			e[9] = patchHosted
		}
		e[10] = p.Level
		copy(e[16:24], p.Old)
		copy(e[24:32], p.New)
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
		n := int(e[8])
		if n == 0 || n > maxPatchLen {
			return nil, fmt.Errorf("recovery record has a patch of %d bytes", n)
		}
		r.patches = append(r.patches, probe.Patch{Addr: le.Uint64(e), Island: e[9] == patchIsland, Hosted: e[9] == patchHosted, Level: e[10],
			Old: append([]byte(nil), e[16:16+n]...), New: append([]byte(nil), e[24:24+n]...)})
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
