package recovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"unsafe"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// A Record is what it takes to undo a recording without the recorder that made it: a list of records in the recovery memory. What is
// to be mapped, and what is to be changed, is added before the first byte of it is, and never taken back. A record of a library that
// has gone, or gone and come back as it was, does no harm: only bytes that are exactly the new ones are ever restored. And forked children
// read the same list: one may still have the library.
//
// Layout of a record, little-endian: magic u64, CRC-32C of what follows but the states u32, version u32, number of arenas u32, of patches u32,
// of semaphores u32, of slots u32; then per arena base, size with its gate, device and inode of its memfd (u64 each); then per patch address
// u64, old bytes [5], new bytes [5], length u8, kind u8 (0, patchIsland or patchHosted), level u8, three bytes of zero; then per semaphore
// address, device and inode of its file, address of a site (u64 each); then per slot address, what was there, where its stub goes on, the stub,
// device and inode of the mapping (u64 each); then per semaphore its state u64, which changes. The next record follows.
// The magic is stored last.
type Record struct {
	Arenas     []Arena
	Patches    []stub.Patch
	Semaphores []Semaphore
	Slots      []Slot
	Golang     bool // it is a Go program: not in the record, but in the recovery memory's header
	Forked     bool // the process is a forked child, to which states of semaphores don't apply: not in the record either
}

// A Slot is a word of data that leads to a stub while it is recorded.
type Slot struct {
	Addr uint64
	// Was was there before, Target is where the stub goes on, Stub the address that is there meanwhile.
	Was, Target, Stub uint64
	// Dev and Inode are of the file that is mapped there, as process.Mapping has them, 0 for memory of no file.
	Dev, Inode uint64
}

// An Arena is where an arena is, with its gate, and the memfd that its code is in: device and inode as process.Mapping has them, 0 if
// it is in none.
type Arena struct {
	Span
	Dev, Inode uint64
}

// A Span is memory of Size bytes from Base on.
type Span struct{ Base, Size uint64 }

const (
	recoveryMagic   = 0x79726576_6f636572 // "recovery"
	recoveryVersion = 7
	RecordHeader    = 32
	recoveryArena   = 32
	recoveryPatch   = 24
	recoverySem     = 32 // without its state
	recoverySlot    = 48
	patchIsland     = 1
	patchHosted     = 2
)

// RecordSize is the size of a record.
func RecordSize(arenas, patches, semaphores, slots int) uint64 {
	return statesAt(arenas, patches, semaphores, slots) + uint64(semaphores)*8
}

// statesAt is where in it the states of semaphores are.
func statesAt(arenas, patches, semaphores, slots int) uint64 {
	return RecordHeader + uint64(arenas)*recoveryArena + uint64(patches)*recoveryPatch + uint64(semaphores)*recoverySem + uint64(slots)*recoverySlot
}

// errRecoveryFull: there is no space for another record.
var errRecoveryFull = errors.New("callreel: no space is left to note what would have to be undone")

// A Journal adds records to a space that is all zero.
type Journal struct {
	Space []byte // its address is a multiple of 8
	used  uint64
}

// Add writes a record.
func (j *Journal) Add(r *Record) error {
	size := RecordSize(len(r.Arenas), len(r.Patches), len(r.Semaphores), len(r.Slots))
	if uint64(len(j.Space))-j.used < size {
		return fmt.Errorf("%w (%d patches)", errRecoveryFull, len(r.Patches))
	}
	buf := j.Space[j.used:][:size]
	if err := r.put(buf); err != nil {
		return err
	}
	for i := range r.Semaphores {
		at := statesAt(len(r.Arenas), len(r.Patches), len(r.Semaphores), len(r.Slots)) + 8*uint64(i)
		r.Semaphores[i].state = (*uint64)(unsafe.Pointer(&buf[at]))
	}
	j.used += size
	// Whoever looks while we are killed sees a whole record, or none.
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(buf))), recoveryMagic)
	return nil
}

// put writes all of a record but its magic; buf has its size.
func (r *Record) put(buf []byte) error {
	le := binary.LittleEndian
	at := RecordHeader
	for _, a := range r.Arenas {
		le.PutUint64(buf[at:], a.Base)
		le.PutUint64(buf[at+8:], a.Size)
		le.PutUint64(buf[at+16:], a.Dev)
		le.PutUint64(buf[at+24:], a.Inode)
		at += recoveryArena
	}
	for i := range r.Patches {
		p := &r.Patches[i]
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
	for i := range r.Semaphores {
		x := &r.Semaphores[i]
		le.PutUint64(buf[at:], x.Addr)
		le.PutUint64(buf[at+8:], x.Dev)
		le.PutUint64(buf[at+16:], x.Inode)
		le.PutUint64(buf[at+24:], x.Site)
		at += recoverySem
	}
	for i := range r.Slots {
		x := &r.Slots[i]
		for k, v := range [...]uint64{x.Addr, x.Was, x.Target, x.Stub, x.Dev, x.Inode} {
			le.PutUint64(buf[at+8*k:], v)
		}
		at += recoverySlot
	}
	le.PutUint32(buf[12:], recoveryVersion)
	le.PutUint32(buf[16:], uint32(len(r.Arenas)))
	le.PutUint32(buf[20:], uint32(len(r.Patches)))
	le.PutUint32(buf[24:], uint32(len(r.Semaphores)))
	le.PutUint32(buf[28:], uint32(len(r.Slots)))
	le.PutUint32(buf[8:], crc32.Checksum(buf[12:at], crc32.MakeTable(crc32.Castagnoli)))
	return nil
}

var errNoRecovery = errors.New("no recovery record")

// ErrRecord is what is wrong with records that can't be read.
var ErrRecord = errors.New("recovery record")

// ReadRecords reads the records in a space of that many bytes, of which read gives pieces, and puts them together; at most the first
// most of them, unless that is 0. Only what holds records is read: reading the rest would give it pages. What is wrong with a record
// is an ErrRecord.
func ReadRecords(size uint64, most int, read func(buf []byte, off uint64) error) (*Record, error) {
	all := &Record{}
	head := make([]byte, RecordHeader)
	for off, n := uint64(0), 0; off+RecordHeader <= size && (most == 0 || n < most); n++ {
		if err := read(head, off); err != nil {
			return nil, err
		}
		need, err := recordSize(head)
		if errors.Is(err, errNoRecovery) {
			break
		}
		if err == nil && need > size-off {
			err = fmt.Errorf("%w at offset %d says that it has %d bytes, more than there are", ErrRecord, off, need)
		}
		if err != nil {
			return nil, err
		}
		buf := make([]byte, need)
		if err := read(buf, off); err != nil {
			return nil, err
		}
		r, err := parseRecovery(buf)
		if err != nil {
			return nil, err
		}
		all.Arenas, all.Patches = append(all.Arenas, r.Arenas...), append(all.Patches, r.Patches...)
		all.Semaphores, all.Slots = append(all.Semaphores, r.Semaphores...), append(all.Slots, r.Slots...)
		off += need
	}
	return all, nil
}

// recordSize is the size of the record that begins with head.
func recordSize(head []byte) (uint64, error) {
	le := binary.LittleEndian
	if len(head) < RecordHeader || le.Uint64(head) != recoveryMagic {
		return 0, errNoRecovery
	}
	if v := le.Uint32(head[12:]); v != recoveryVersion {
		return 0, fmt.Errorf("%w of version %d, this callreel knows %d", ErrRecord, v, recoveryVersion)
	}
	return RecordSize(int(le.Uint32(head[16:])), int(le.Uint32(head[20:])), int(le.Uint32(head[24:])), int(le.Uint32(head[28:]))), nil
}

// parseRecovery reads a record that a target had in its memory, so nothing in it is trusted.
func parseRecovery(buf []byte) (*Record, error) {
	size, err := recordSize(buf)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	na, np, ns, nt := int(le.Uint32(buf[16:])), int(le.Uint32(buf[20:])), int(le.Uint32(buf[24:])), int(le.Uint32(buf[28:]))
	if size > uint64(len(buf)) {
		return nil, fmt.Errorf("%w says %d arenas, %d patches, %d semaphores and %d slots, more than its %d bytes hold", ErrRecord, na, np, ns, nt, len(buf))
	}
	if sum := crc32.Checksum(buf[12:statesAt(na, np, ns, nt)], crc32.MakeTable(crc32.Castagnoli)); sum != le.Uint32(buf[8:]) {
		return nil, fmt.Errorf("%w is damaged (checksum)", ErrRecord)
	}
	r := &Record{Arenas: make([]Arena, 0, na), Patches: make([]stub.Patch, 0, np)}
	at := RecordHeader
	for range na {
		r.Arenas = append(r.Arenas, Arena{Span{le.Uint64(buf[at:]), le.Uint64(buf[at+8:])}, le.Uint64(buf[at+16:]), le.Uint64(buf[at+24:])})
		at += recoveryArena
	}
	for range np {
		e := buf[at : at+recoveryPatch]
		n := int(e[18])
		if n == 0 || n > stub.MaxPatch {
			return nil, fmt.Errorf("%w has a patch of %d bytes", ErrRecord, n)
		}
		p := stub.NewPatch(le.Uint64(e), e[8:8+n], e[13:13+n])
		p.Island, p.Hosted, p.Level = e[19] == patchIsland, e[19] == patchHosted, e[20]
		r.Patches = append(r.Patches, p)
		at += recoveryPatch
	}
	for i := range ns {
		e := buf[at : at+recoverySem]
		x := Semaphore{Addr: le.Uint64(e), Dev: le.Uint64(e[8:]), Inode: le.Uint64(e[16:]), Site: le.Uint64(e[24:])}
		x.noted = State(le.Uint64(buf[int(statesAt(na, np, ns, nt))+8*i:]))
		r.Semaphores = append(r.Semaphores, x)
		at += recoverySem
	}
	for range nt {
		word := func(k int) uint64 { return le.Uint64(buf[at+8*k:]) }
		r.Slots = append(r.Slots, Slot{Addr: word(0), Was: word(1), Target: word(2), Stub: word(3), Dev: word(4), Inode: word(5)})
		at += recoverySlot
	}
	return r, nil
}

// InArena says whether addr lies in one of the arenas.
func (r *Record) InArena(addr uint64) bool {
	for _, a := range r.Arenas {
		if addr >= a.Base && addr-a.Base < a.Size {
			return true
		}
	}
	return false
}

// LateSize is space for the records of libraries that come while recording, 2 M patches. Only the pages in use exist.
const LateSize = 64 << 20
