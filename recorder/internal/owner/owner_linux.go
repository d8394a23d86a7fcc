package owner

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Owner is a thread of this process that the kernel signs off for when it ends, however it ends: the words that it holds are on
// its list of robust futexes (set_robust_list(2), Documentation/locking/robust-futex-ABI.rst). In each word stands the thread's ID,
// and the kernel adds FUTEX_OWNER_DIED when the thread ends.
type Owner struct {
	mu    sync.Mutex // guards what follows
	head  *robustList
	nodes []*robustNode // in the list's order
	tid   uint32
	quit  chan struct{}
	ended chan struct{}
}

// robustNode and robustList are struct robust_list and robust_list_head of linux/futex.h.
type (
	robustNode struct{ next unsafe.Pointer }
	robustList struct {
		list    robustNode
		offset  int64 // from a node to its futex
		pending unsafe.Pointer
	}
)

// died is FUTEX_OWNER_DIED.
const died = 0x40000000

// Lives says whether the owner of a word lives, by the word's value.
func Lives(word uint32) bool { return word != 0 && word&died == 0 }

// page is the size of the kernel's pages. A node stands in a page of ours in front of the shared memory, so that it is as far from its word
// as every other. That page, and the head's, are shared memory too: the kernel's OOM reaper may take private memory away before it walks
// the list.
func page() int { return unix.Getpagesize() }

// Memory is shared memory with a word that says whether this process lives. Its methods and the Owner's may be called by several
// goroutines.
type Memory struct {
	// Bytes is the memory. It may not be used after Close.
	Bytes []byte
	all   []byte // with the page in front of it
	word  *uint32
	node  *robustNode
	owner *Owner
}

// New starts the thread. All words that it is to hold are that many bytes behind the beginning of their memory, a multiple of 4.
func New(word int) (*Owner, error) {
	if word < 0 || word%4 != 0 {
		return nil, fmt.Errorf("callreel: no futex can stand at %d", word)
	}
	mem, err := unix.Mmap(-1, 0, page(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("callreel: memory for a list of futexes: %w", err)
	}
	o := &Owner{head: (*robustList)(unsafe.Pointer(unsafe.SliceData(mem))), quit: make(chan struct{}), ended: make(chan struct{})}
	o.head.list.next = unsafe.Pointer(&o.head.list)
	o.head.offset = int64(page() + word)
	started := make(chan error)
	go o.live(started, mem)
	if err := <-started; err != nil {
		return nil, err
	}
	return o, nil
}

// live is the thread.
func (o *Owner) live(started chan<- error, mem []byte) {
	defer close(o.ended)
	defer func() { _ = unix.Munmap(mem) }() // it is ours and mapped, so it can't fail
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A C library, in a program that embeds this, has given the thread a list of its own, empty as nobody else runs here.
	var before, size uintptr
	if _, _, e := unix.RawSyscall(unix.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&before)), uintptr(unsafe.Pointer(&size))); e != 0 {
		started <- fmt.Errorf("callreel: get_robust_list: %w", e)
		return
	}
	const listSize = unsafe.Sizeof(robustList{})
	if _, _, e := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(o.head)), listSize, 0); e != 0 {
		started <- fmt.Errorf("callreel: set_robust_list: %w", e)
		return
	}
	o.tid = uint32(unix.Gettid())
	started <- nil
	<-o.quit
	_, _, _ = unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, before, listSize, 0) // the size is right, so it can't fail
}

// Close ends the thread. The words that it still holds say from then on that nobody lives; their memory stays mapped.
func (o *Owner) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.nodes {
		atomic.StoreUint32(o.wordOf(n), 0)
	}
	o.nodes = nil
	close(o.quit)
	<-o.ended
}

func (o *Owner) wordOf(n *robustNode) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(n), o.head.offset))
}

// Map maps size bytes, a multiple of the page size, of a file for reading and writing, shared, and writes into the word of that
// memory that this process lives. The file must not become smaller.
func (o *Owner) Map(fd int, size int) (*Memory, error) {
	page := page()
	if size <= 0 || size%page != 0 || int64(size) <= o.head.offset-int64(page) {
		return nil, fmt.Errorf("callreel: shared memory of %d bytes", size)
	}
	all, err := unix.Mmap(-1, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("callreel: %d bytes of address space: %w", size, err)
	}
	at := unsafe.Pointer(&all[page])
	if _, err := unix.MmapPtr(fd, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return nil, errors.Join(fmt.Errorf("callreel: mapping %d bytes of shared memory: %w", size, err), unix.Munmap(all))
	}
	m := &Memory{Bytes: all[page:], all: all, node: (*robustNode)(unsafe.Pointer(unsafe.SliceData(all))), owner: o}
	m.word = o.wordOf(m.node)
	o.hold(m)
	return m, nil
}

// hold puts a node at the list's beginning. The kernel may walk the list at any instant: before the node is reached from the head it
// leads to the rest.
func (o *Owner) hold(m *Memory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.node.next = o.head.list.next
	atomic.StoreUint32(m.word, o.tid)
	atomic.StorePointer(&o.head.list.next, unsafe.Pointer(m.node))
	o.nodes = append([]*robustNode{m.node}, o.nodes...)
}

// Release says that nobody lives for this memory any more, which stays mapped.
func (m *Memory) Release() {
	o := m.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	before := &o.head.list
	for i, n := range o.nodes {
		if n == m.node {
			atomic.StorePointer(&before.next, n.next)
			o.nodes = append(o.nodes[:i:i], o.nodes[i+1:]...)
			atomic.StoreUint32(m.word, 0)
			return
		}
		before = n
	}
}

// Close releases the memory and unmaps it.
func (m *Memory) Close() error {
	if m.all == nil {
		return nil
	}
	m.Release()
	all := m.all
	m.all, m.Bytes = nil, nil
	return unix.Munmap(all)
}
