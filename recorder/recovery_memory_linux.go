package recorder

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/owner"
)

// The recovery memory is a memfd of its own: a header, and the recovery records. The recorder writes it; the target, and all that it
// forks, have it mapped for reading, and F_SEAL_FUTURE_WRITE sees to it that they never have it otherwise. So what is to be undone in
// one process can't be altered by another that shares the memory with it, nor by a stray write.
//
// The header says whose it is: the process that is recorded, the ring memory by its inode, and the recorder. It is signed, with a key
// that only the recorder's user can read, together with the memfd's inode: a copy of it in another memfd has a wrong signature.
const (
	recoveryMemfd   = "callreel-recovery"
	recoveryMapping = "/memfd:" + recoveryMemfd
)

// Offsets of the header's fields. Records begin behind its page.
const (
	recMagic         = 0  // u64, stored last
	recVersion       = 8  // u32
	recOwner         = 12 // u32, see package owner
	recRecorderPID   = 16 // u32, as the recorder's own namespace counts
	recGo            = 20 // u32, 1 for a Go program
	recRecorderStart = 24 // u64, clock ticks since boot
	recRecorderNS    = 32 // u64, the recorder's PID namespace
	recTargetNS      = 40 // u64, process.Identity of the target
	recTargetPID     = 48 // u64
	recTargetStart   = 56 // u64
	recTimeNS        = 64 // u64
	recRingDev       = 72 // u64, as process.Mapping has it
	recRingInode     = 80 // u64
	recSize          = 88 // u64, of this memory
	recSignature     = 96 // [32]byte, zero where there is no key
	recRecords       = pageSize
)

const (
	recMemoryMagic   = 0x79726f6365726c63 // "clrecory"
	recMemoryVersion = 1
	// recMost bounds what is read of such a memory: records of 40 M patches.
	recMost = 1 << 30
)

// recoveryMemory is the recorder's own mapping of it.
type recoveryMemory struct {
	mem  *owner.Memory
	file process.Memfd
	at   uint64 // where the target has mapped it; 0 while it hasn't
}

// newRecoveryMemory lays out a fresh memfd, which the caller goes on to close, for records of that many bytes, and seals it.
func newRecoveryMemory(o *owner.Owner, file process.Memfd, records uint64) (*recoveryMemory, error) {
	size := recRecords + (records+pageSize-1)&^(pageSize-1)
	if size > recMost {
		return nil, fmt.Errorf("callreel: %w: %d MiB of recovery records", ErrRefused, size>>20)
	}
	if err := giveSize(file.FD, size); err != nil {
		return nil, fmt.Errorf("callreel: memory for recovery records: %w", err)
	}
	mem, err := o.Map(file.FD, int(size))
	if err != nil {
		return nil, err
	}
	if _, err := sealForGood(file.FD, true); err != nil {
		mem.Close()
		return nil, err
	}
	return &recoveryMemory{mem: mem, file: file}, nil
}

// journal is room for records.
func (m *recoveryMemory) journal() journal { return journal{space: m.mem.Bytes[recRecords:]} }

func (m *recoveryMemory) size() uint64 { return uint64(len(m.mem.Bytes)) }

// about is what the header says.
type about struct {
	recorder         int
	recorderStart    uint64
	recorderNS       uint64
	target           process.Identity
	ringDev, ringIno uint64
	golang           bool
}

// aboutUs says it for a recorder that is this process.
func aboutUs(p *process.Process, ring process.Memfd, golang bool) (about, error) {
	start, err := process.OwnStartTime()
	if err != nil {
		return about{}, fmt.Errorf("callreel: %w", err)
	}
	target, err := p.Identity()
	if err != nil {
		return about{}, err
	}
	return about{recorder: os.Getpid(), recorderStart: start, recorderNS: process.OwnPIDNamespace(), target: target,
		ringDev: ring.Dev, ringIno: ring.Inode, golang: golang}, nil
}

// sign writes the header. A recorder without a key goes without a signature.
func (m *recoveryMemory) sign(a about, key []byte) {
	h, le := m.mem.Bytes[:recRecords], binary.LittleEndian
	le.PutUint32(h[recVersion:], recMemoryVersion)
	le.PutUint32(h[recRecorderPID:], uint32(a.recorder))
	if a.golang {
		le.PutUint32(h[recGo:], 1)
	}
	le.PutUint64(h[recRecorderStart:], a.recorderStart)
	le.PutUint64(h[recRecorderNS:], a.recorderNS)
	le.PutUint64(h[recTargetNS:], a.target.PIDNamespace)
	le.PutUint64(h[recTargetPID:], uint64(a.target.PID))
	le.PutUint64(h[recTargetStart:], a.target.Start)
	le.PutUint64(h[recTimeNS:], a.target.TimeNamespace)
	le.PutUint64(h[recRingDev:], a.ringDev)
	le.PutUint64(h[recRingInode:], a.ringIno)
	le.PutUint64(h[recSize:], m.size())
	if key != nil {
		copy(h[recSignature:], signatureOf(h, m.file.Dev, m.file.Inode, key))
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(h))), recMemoryMagic)
}

// signatureOf signs a header, but for its owner and magic, which change, for the memfd that it stands in.
func signatureOf(header []byte, dev, inode uint64, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("callreel recovery memory\x00"))
	var file [16]byte
	binary.LittleEndian.PutUint64(file[:], dev)
	binary.LittleEndian.PutUint64(file[8:], inode)
	mac.Write(file[:])
	mac.Write(header[recVersion:recOwner])
	mac.Write(header[recRecorderPID:recSignature])
	return mac.Sum(nil)
}

// parseAbout reads a header that may be anybody's.
func parseAbout(h []byte) (a about, size uint64, ok bool) {
	le := binary.LittleEndian
	if len(h) < recRecords || le.Uint64(h) != recMemoryMagic || le.Uint32(h[recVersion:]) != recMemoryVersion {
		return a, 0, false
	}
	a = about{
		recorder: int(le.Uint32(h[recRecorderPID:])), recorderStart: le.Uint64(h[recRecorderStart:]), recorderNS: le.Uint64(h[recRecorderNS:]),
		target: process.Identity{PIDNamespace: le.Uint64(h[recTargetNS:]), PID: int(le.Uint64(h[recTargetPID:])),
			Start: le.Uint64(h[recTargetStart:]), TimeNamespace: le.Uint64(h[recTimeNS:])},
		ringDev: le.Uint64(h[recRingDev:]), ringIno: le.Uint64(h[recRingInode:]), golang: le.Uint32(h[recGo:]) != 0,
	}
	return a, le.Uint64(h[recSize:]), true
}

// giveSize gives a memfd its size, for good: neither side is ever to meet a page that isn't there. The target's other processes may have
// the memfd, too, and change its size until it is sealed, so it must be looked at after that, and mapped only then.
func giveSize(fd int, size uint64) error {
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return fmt.Errorf("%d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Size != int64(size) {
		return fmt.Errorf("%w: somebody else has the memfd, and has changed its size from %d bytes to %d", ErrRefused, size, st.Size)
	}
	return nil
}

// sealForGood lets a memfd have no other seals than it gets here, once it is mapped: where it is to be read only, nobody can map it for
// writing any more who hasn't yet. That can't be had before Linux 5.1, which readOnly says.
func sealForGood(fd int, readOnly bool) (isReadOnly bool, err error) {
	if readOnly {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_FUTURE_WRITE)
	}
	if !readOnly || err == unix.EINVAL {
		readOnly = false
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL)
	}
	if err != nil {
		return false, fmt.Errorf("callreel: sealing shared memory: %w", err)
	}
	return readOnly, nil
}
