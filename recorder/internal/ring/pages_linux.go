package ring

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HugePage is the size of a huge page, in bytes, on amd64. What maps ring memory puts it at a multiple of that, so that huge pages of the
// file are huge pages of the mapping: elsewhere they may be larger, and then there are none.
const HugePage = 2 << 20

// mapAligned maps a file at a multiple of HugePage.
func mapAligned(fd int, size uint64) ([]byte, error) {
	room := uintptr(size) + HugePage
	first, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	skip := -uintptr(first) & (HugePage - 1)
	at := unsafe.Add(first, skip)
	if _, err := unix.MmapPtr(fd, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return nil, errors.Join(err, unix.MunmapPtr(first, room))
	}
	if skip > 0 {
		err = unix.MunmapPtr(first, skip)
	}
	pages := (uintptr(size) + uintptr(unix.Getpagesize()) - 1) &^ (uintptr(unix.Getpagesize()) - 1)
	if behind := skip + pages; behind < room {
		err = errors.Join(err, unix.MunmapPtr(unsafe.Add(first, behind), room-behind))
	}
	mem := unsafe.Slice((*byte)(at), size)
	if err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	return mem, nil
}

// unmap is for what mapAligned has mapped.
func unmap(mem []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// Populate makes the kernel give the chunks their pages now and on the recorder's account, so that the target neither
// waits for nor is charged with them. It takes huge pages where the kernel has some. No thread of the target writes events meanwhile.
func (m *Memory) Populate() error {
	const madvPopulateWrite = 23 // Linux 5.14; an older kernel says EINVAL, and then pages come on first use
	chunks := m.mem[ChunksOff:][:m.small*SmallSize+(m.chunks-m.small)*ChunkSize]
	populateHuge(chunks)
	err := unix.Madvise(chunks, madvPopulateWrite)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("callreel: %d MiB of ring memory: %w", len(chunks)>>20, err)
	}
	if m.later != nil {
		m.initOverwrite(m.later.TicksPerSecond)
		m.later = nil
	}
	return nil
}

const (
	// hugePiece is how much memory is asked for at once. Each time the kernel waits for all processors, so pieces of one huge page took
	// six times as long.
	hugePiece = 16 * HugePage
	// hugeRefusals is how many pieces of which the kernel has not got all are enough: each may let it look for room for some milliseconds.
	hugeRefusals = 4
)

// populateHuge gives memory huge pages, where it has room for whole ones. That is asked for with MADV_COLLAPSE (Linux 6.1), which does it
// whatever the system gives by itself (shmem_enabled, which is "never" as a rule), and for what is otherwise empty needs no more than to clear
// it. It is not needed, so nothing comes of its failing: what memory it has not got comes page by page.
func populateHuge(mem []byte) {
	const madvCollapse = 25
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (HugePage - 1)
	if uintptr(len(mem)) < skip+HugePage {
		return
	}
	mem = mem[skip:]
	mem = mem[:len(mem)&^(HugePage-1)]
	for refused := 0; len(mem) > 0 && refused < hugeRefusals; {
		piece := mem[:min(hugePiece, len(mem))]
		mem = mem[len(piece):]
		for i := 0; i < len(piece); i += HugePage {
			touch(&piece[i]) // what has no page at all is left alone
		}
		switch err := unix.Madvise(piece, madvCollapse); {
		case errors.Is(err, unix.EINVAL): // the kernel has none
			return
		case err != nil:
			refused++
		}
	}
}

// touch makes a byte's page be there, and changes nothing.
func touch(b *byte) { atomic.AddUint32((*uint32)(unsafe.Pointer(b)), 0) }
