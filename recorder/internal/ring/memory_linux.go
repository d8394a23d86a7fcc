package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/reel"
)

// The ring's event and the reel's are the same bytes; a change of either must not go unnoticed.
var (
	_ [EventSize]byte = [unsafe.Sizeof(reel.Event{})]byte{}
	_ [EventTime]byte = [unsafe.Offsetof(reel.Event{}.Time)]byte{}
	_ [EventSP]byte   = [unsafe.Offsetof(reel.Event{}.SP)]byte{}
	_ [EventWord]byte = [unsafe.Offsetof(reel.Event{}.Word)]byte{}
)

// How long the recorder may be silent: see HdrWaitLimit and HdrCloseLimit. A recorder writes its heartbeat every few
// milliseconds; a machine under heavy load may keep it from running for a second.
const (
	waitLimit  = 2 * time.Second
	closeLimit = 30 * time.Second
)

// loadAsk is how long a thread that has loaded a library waits for a recorder that shows no sign of life. loadMost is how long it
// waits in all, for the stops of the process, too, which on a busy machine take most of it.
const (
	loadAsk  = 50 * time.Millisecond
	loadMost = 300 * time.Millisecond
)

// Memory is the recorder's mapping of the ring memory.
type Memory struct {
	mem      []byte
	fd       int    // see peek
	chunks   int    // the small ones included
	small    int    // chunks 0 to small-1 are small
	base     uint64 // where the target has mapped it
	counts   uint64 // where calls are counted; 0 if they aren't
	areas    uint64 // where the threads' areas begin; 0 if there are none
	reserved int    // chunks 0 to reserved-1 belong to the reserve
	// later is what Populate is to lay out, nil for nothing.
	later *Setup
	beats beats
}

// Setup says how fresh memory is to be laid out.
type Setup struct {
	Chunks         int  // of ChunkSize, before some of them are divided
	Divide         bool // some of them into small ones, see SmallSize
	Overwrite      bool // nothing is drained: see Snapshotter
	Later          bool // Populate follows before the memory is used, and writes what chunks of Overwrite say of themselves
	TicksPerSecond uint64
	Min            uint64 // ticks, see HdrMin
	Depth          int    // see HdrDepth
}

// Map maps the memory behind a file descriptor of a memfd that already has its size.
func Map(fd int, size uint64) (*Memory, error) {
	if size < ChunksOff+ChunkSize || size > 1<<40 {
		return nil, fmt.Errorf("callreel: ring memory of %d bytes", size)
	}
	mem, err := mapAligned(fd, size)
	if err != nil {
		return nil, fmt.Errorf("callreel: mapping %d bytes of ring memory: %w", size, err)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		_ = unmap(mem) // it has just been mapped
		return nil, fmt.Errorf("callreel: a descriptor of the ring memory: %w", err)
	}
	return &Memory{mem: mem, fd: own}, nil
}

// Close unmaps the memory.
func (m *Memory) Close() error {
	if m.mem == nil {
		return nil
	}
	mem := m.mem
	m.mem = nil
	return errors.Join(unmap(mem), unix.Close(m.fd))
}

// ErrTooSmall is returned for a ring size of fewer chunks than recording can work with.
var ErrTooSmall = errors.New("callreel: the ring needs at least 512K")

// MinChunks is how many chunks there must be.
const MinChunks = 8

// Init writes the header and puts every chunk on a stack. A quarter of them is kept for exits of accepted calls.
func (m *Memory) Init(s Setup) error {
	if s.Chunks < MinChunks {
		return ErrTooSmall
	}
	if s.Chunks > MaxChunks || Size(s.Chunks) > uint64(len(m.mem)) {
		return fmt.Errorf("callreel: %d chunks don't fit the ring memory", s.Chunks)
	}
	m.divide(s)
	m.beats.perSecond = s.TicksPerSecond
	put := func(off int, v uint64) { binary.LittleEndian.PutUint64(m.mem[off:], v) }
	binary.LittleEndian.PutUint32(m.mem[HdrVersion:], Version)
	put(HdrSize, uint64(len(m.mem)))
	put(PausedOff, 0) // which makes its page be there: every event looks at it
	put(HdrWaitLimit, uint64(waitLimit.Seconds()*float64(s.TicksPerSecond)))
	put(HdrCloseLimit, uint64(closeLimit.Seconds()*float64(s.TicksPerSecond)))
	put(HdrLoadAsk, uint64(loadAsk.Seconds()*float64(s.TicksPerSecond)))
	put(HdrLoadMost, uint64(loadMost.Seconds()*float64(s.TicksPerSecond)))
	m.SetMin(s.Min)
	m.SetDepth(s.Depth)
	m.Beat()
	m.freeAll()
	switch {
	case s.Overwrite && s.Later:
		m.later = &s
	case s.Overwrite:
		m.initOverwrite(s.TicksPerSecond)
	}
	put(HdrMagic, Magic)
	return nil
}

// divide says which chunks are small: those of the reserve, which is a quarter of all, and seven sixteenths of the others. With those
// of 64 MiB 10,752 threads have one each, and a busy one has 27 MiB of the others.
func (m *Memory) divide(s Setup) {
	reserved := s.Chunks / 4
	if !s.Divide {
		m.chunks, m.small, m.reserved = s.Chunks, 0, reserved
		return
	}
	const most = MaxSmall / perChunk / 2
	reserved = min(reserved, most)
	pool := min((s.Chunks-reserved)*7/16, most)
	m.reserved, m.small = reserved*perChunk, (reserved+pool)*perChunk
	m.chunks = m.small + s.Chunks - reserved - pool
	binary.LittleEndian.PutUint32(m.mem[HdrSmall:], uint32(m.small))
}

// freeAll puts every chunk of fresh memory on its stack, without touching the chunks.
func (m *Memory) freeAll() {
	push := func(head uint64, from, to int) {
		if from == to {
			return
		}
		for i := from; i < to; i++ {
			below := uint32(0)
			if i+1 < to {
				below = uint32(i + 2)
			}
			atomic.StoreUint32(m.u32(NextOff+4*uint64(i)), below)
		}
		atomic.StoreUint64(m.u64(head), 1<<32|uint64(from+1))
	}
	push(HdrReserve, 0, m.reserved)
	large := max(m.small, m.reserved)
	push(HdrSmallPool, m.reserved, large)
	push(HdrPool, large, m.chunks)
}

// A Range is a part of the memory: offsets, the second is behind its end.
type Range struct{ From, To uint64 }

// FirstTaken are the chunks that threads take first, at most so many bytes: those of the pools, an eighth of it of the small ones, of which
// each thread has but some. Those of the reserve aren't among them.
func (m *Memory) FirstTaken(most uint64) []Range {
	small, large := m.chunk(uint32(m.reserved)), m.chunk(uint32(max(m.small, m.reserved)))
	end := m.chunk(uint32(m.chunks))
	first := Range{small, min(large, small+most/8)}
	rest := Range{large, min(end, large+most-(first.To-first.From))}
	if first.From == first.To {
		return []Range{rest}
	}
	return []Range{first, rest}
}

// SetBase writes where the target has mapped the memory.
func (m *Memory) SetBase(addr uint64) {
	m.base = addr
	binary.LittleEndian.PutUint64(m.mem[HdrBase:], addr)
}

// ErrGates is returned for more arenas than a hook can close the gates of.
var ErrGates = errors.New("callreel: too many arenas")

// SetGates writes the list of gates. It may get longer while the target runs, but what was in it stays.
func (m *Memory) SetGates(gates []uint64) error {
	if len(gates) > MaxGates {
		return ErrGates
	}
	for i, g := range slices.Backward(gates) { // so that it always ends with a 0
		atomic.StoreUint64(m.u64(HdrGates+8*uint64(i)), g)
	}
	return nil
}

// Sandboxed says whether the target has closed its gates for good, since it was about to restrict its own system calls.
func (m *Memory) Sandboxed() bool { return atomic.LoadUint64(m.u64(HdrSandboxed)) != 0 }

func (m *Memory) u64(off uint64) *uint64 { return (*uint64)(unsafe.Pointer(&m.mem[off])) }
func (m *Memory) u32(off uint64) *uint32 { return (*uint32)(unsafe.Pointer(&m.mem[off])) }

// chunk is the offset of chunk i; callers have checked i.
func (m *Memory) chunk(i uint32) uint64 {
	if int(i) < m.small {
		return ChunksOff + uint64(i)<<SmallShift
	}
	return ChunksOff + uint64(m.small)<<SmallShift + uint64(int(i)-m.small)<<ChunkShift
}

// capacity is how many events chunk i holds.
func (m *Memory) capacity(i uint32) int {
	if int(i) < m.small {
		return SmallEvents
	}
	return ChunkEvents
}

// events is the memory of chunk i's events.
func (m *Memory) events(i uint32) []reel.Event {
	n := m.capacity(i)
	b := m.mem[m.chunk(i)+ChunkHeader:][:n*EventSize]
	return unsafe.Slice((*reel.Event)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// free pushes chunk i, whose events are all zero, back on its stack. Only the recorder pushes; the target's threads pop
// at the same time. The last one freed is the next one used, so that a few chunks stay in the caches.
func (m *Memory) free(i uint32) {
	atomic.StoreUint32(m.u32(m.chunk(i)+ChunkNext), 0)
	atomic.StoreUint32(m.u32(m.chunk(i)+ChunkDrained), 0)
	switch {
	case int(i) < m.reserved:
		m.push(HdrReserve, i)
	case int(i) < m.small:
		m.push(HdrSmallPool, i)
	default:
		m.push(HdrPool, i)
	}
}

// push puts chunk i on the stack whose head is at off.
func (m *Memory) push(off uint64, i uint32) {
	const tries = 1 << 20 // the target's threads succeed in between, or one of them keeps changing it
	head := m.u64(off)
	for range tries {
		old := atomic.LoadUint64(head)
		atomic.StoreUint32(m.u32(NextOff+4*uint64(i)), uint32(old))
		if atomic.CompareAndSwapUint64(head, old, (old>>32+1)<<32|uint64(i+1)) {
			return
		}
	}
}
