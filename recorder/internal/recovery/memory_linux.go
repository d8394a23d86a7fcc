package recovery

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
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/text"
)

// The recovery memory is a memfd of its own: a header, and the recovery records. The recorder writes it; the target, and all that it
// forks, have it mapped for reading, and F_SEAL_FUTURE_WRITE sees to it that they never have it otherwise. So what is to be undone in
// one process can't be altered by another that shares the memory with it, nor by a stray write.
//
// The header says whose it is: the process that is recorded, the ring memory by its inode, and the recorder. It is signed, with a key
// that only the recorder's user can read, together with the memfd's inode: a copy of it in another memfd has a wrong signature.
const (
	MemfdName   = "callreel-recovery"
	MappingName = "/memfd:" + MemfdName
)

// Offsets of the header's fields. Records begin behind it.
const (
	HdrMagic         = 0  // u64, stored last
	HdrVersion       = 8  // u32
	HdrOwner         = 12 // u32, see package owner
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
	HdrSize          = 88 // u64, of this memory
	HdrSignature     = 96 // [32]byte, zero where there is no key
	RecordsOff       = text.PageSize
)

const (
	MemoryMagic   = 0x79726f6365726c63 // "clrecory"
	MemoryVersion = 1
	// MostSize bounds what is read of such a memory: records of 40 M patches.
	MostSize = 1 << 30
)

// A Memory is the recorder's own mapping of it.
type Memory struct {
	File process.Memfd
	At   uint64 // where the target has mapped it; 0 while it hasn't
	mem  *owner.Memory
}

// Close unmaps it here. It says from then on that no recorder is at work.
func (m *Memory) Close() error { return m.mem.Close() }

// New lays out a fresh memfd, which the caller goes on to close, for records of that many bytes, and seals it.
func New(o *owner.Owner, file process.Memfd, records uint64) (*Memory, error) {
	page := uint64(unix.Getpagesize()) // whole pages are mapped, and what is mapped has to have the size that the header says
	size := (RecordsOff + records + page - 1) &^ (page - 1)
	if size > MostSize {
		return nil, fmt.Errorf("callreel: %w: %d MiB of recovery records", refusal.Err, size>>20)
	}
	if err := GiveSize(file.FD, size); err != nil {
		return nil, fmt.Errorf("callreel: memory for recovery records: %w", err)
	}
	mem, err := o.Map(file.FD, int(size))
	if err != nil {
		return nil, err
	}
	if _, err := Seal(file.FD); err != nil {
		mem.Close()
		return nil, err
	}
	return &Memory{mem: mem, File: file}, nil
}

// Journal is space for records.
func (m *Memory) Journal() Journal { return Journal{Space: m.mem.Bytes[RecordsOff:]} }

// Size is that of all of it, in bytes.
func (m *Memory) Size() uint64 { return uint64(len(m.mem.Bytes)) }

// An About is what the header says.
type About struct {
	Recorder         int
	RecorderStart    uint64
	RecorderNS       uint64
	Target           process.Identity
	RingDev, RingIno uint64
	Golang           bool
}

// AboutUs says it for a recorder that is this process.
func AboutUs(p *process.Process, ring process.Memfd, golang bool) (About, error) {
	start, err := process.OwnStartTime()
	if err != nil {
		return About{}, fmt.Errorf("callreel: %w", err)
	}
	target, err := p.Identity()
	if err != nil {
		return About{}, err
	}
	return About{Recorder: os.Getpid(), RecorderStart: start, RecorderNS: process.OwnPIDNamespace(), Target: target,
		RingDev: ring.Dev, RingIno: ring.Inode, Golang: golang}, nil
}

// Sign writes the header. A recorder without a key goes without a signature.
func (m *Memory) Sign(a About, key []byte) {
	h, le := m.mem.Bytes[:RecordsOff], binary.LittleEndian
	le.PutUint32(h[HdrVersion:], MemoryVersion)
	le.PutUint32(h[recRecorderPID:], uint32(a.Recorder))
	if a.Golang {
		le.PutUint32(h[recGo:], 1)
	}
	le.PutUint64(h[recRecorderStart:], a.RecorderStart)
	le.PutUint64(h[recRecorderNS:], a.RecorderNS)
	le.PutUint64(h[recTargetNS:], a.Target.PIDNamespace)
	le.PutUint64(h[recTargetPID:], uint64(a.Target.PID))
	le.PutUint64(h[recTargetStart:], a.Target.Start)
	le.PutUint64(h[recTimeNS:], a.Target.TimeNamespace)
	le.PutUint64(h[recRingDev:], a.RingDev)
	le.PutUint64(h[recRingInode:], a.RingIno)
	le.PutUint64(h[HdrSize:], m.Size())
	if key != nil {
		copy(h[HdrSignature:], SignatureOf(h, m.File.Dev, m.File.Inode, key))
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(h))), MemoryMagic)
}

// SignatureOf signs a header, but for its owner and magic, which change, for the memfd that it is in.
func SignatureOf(header []byte, dev, inode uint64, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("callreel recovery memory\x00"))
	var file [16]byte
	binary.LittleEndian.PutUint64(file[:], dev)
	binary.LittleEndian.PutUint64(file[8:], inode)
	mac.Write(file[:])
	mac.Write(header[HdrVersion:HdrOwner])
	mac.Write(header[recRecorderPID:HdrSignature])
	return mac.Sum(nil)
}

// ParseAbout reads a header that may be anybody's.
func ParseAbout(h []byte) (a About, size uint64, ok bool) {
	le := binary.LittleEndian
	if len(h) < RecordsOff || le.Uint64(h) != MemoryMagic || le.Uint32(h[HdrVersion:]) != MemoryVersion {
		return a, 0, false
	}
	a = About{
		Recorder: int(le.Uint32(h[recRecorderPID:])), RecorderStart: le.Uint64(h[recRecorderStart:]), RecorderNS: le.Uint64(h[recRecorderNS:]),
		Target: process.Identity{PIDNamespace: le.Uint64(h[recTargetNS:]), PID: int(le.Uint64(h[recTargetPID:])),
			Start: le.Uint64(h[recTargetStart:]), TimeNamespace: le.Uint64(h[recTimeNS:])},
		RingDev: le.Uint64(h[recRingDev:]), RingIno: le.Uint64(h[recRingInode:]), Golang: le.Uint32(h[recGo:]) != 0,
	}
	return a, le.Uint64(h[HdrSize:]), true
}

// GiveSize gives a memfd its size, for good: neither side is ever to meet a page that isn't there. The target's other processes may have
// the memfd, too, and change its size until it is sealed, so it must be looked at after that, and mapped only then.
func GiveSize(fd int, size uint64) error {
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
		return fmt.Errorf("%w: somebody else has the memfd, and has changed its size from %d bytes to %d", refusal.Err, size, st.Size)
	}
	return nil
}

// Seal sees to it that nobody can map a memfd for writing any more who hasn't yet, and that it gets no other seals. Before Linux 5.1 only
// the latter can be had, which readOnly says.
func Seal(fd int) (readOnly bool, err error) {
	readOnly = true
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_FUTURE_WRITE)
	if err == unix.EINVAL {
		readOnly = false
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL)
	}
	if err != nil {
		return false, fmt.Errorf("callreel: sealing shared memory: %w", err)
	}
	return readOnly, nil
}
