package ring

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// testBase is where producers believe the memory to be mapped.
const testBase = 0x7000_0000_0000

func newMemory(t testing.TB, chunks int) *Memory { return memoryOf(t, Setup{Chunks: chunks}) }

// dividedMemory is newMemory with small chunks.
func dividedMemory(t testing.TB, chunks int) *Memory {
	return memoryOf(t, Setup{Chunks: chunks, Divide: true})
}

func memoryOf(t testing.TB, s Setup) *Memory {
	t.Helper()
	chunks := s.Chunks
	fd, err := unix.MemfdCreate(MemfdName, unix.MFD_CLOEXEC)
	realtest.NeedThat(t, "memfd_create", err)
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(Size(chunks))); err != nil {
		t.Fatal(err)
	}
	m, err := Map(fd, Size(chunks))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	s.TicksPerSecond = 1e9
	if err := m.Init(s); err != nil {
		t.Fatal(err)
	}
	m.SetBase(testBase)
	return m
}

// producer imitates the code in the target for one thread, in the same steps.
type producer struct {
	m   *Memory
	tid int
}

var errEmpty = errors.New("the pool is empty")

func (p *producer) slot(field uint64) uint64 { return SlotsOff + uint64(p.tid)*SlotSize + field }

// register enters the thread into the registry.
func (p *producer) register(name string) {
	n := atomic.AddUint64(p.m.u64(HdrRegistered), 1) - 1
	at := RegistryOff + n%RegistrySize*RegistryEntry
	copy(p.m.mem[at+RegName:at+RegName+16], name)
	atomic.StoreUint32(p.m.u32(p.slot(SlotRegistered)), 1)
	atomic.StoreUint32(p.m.u32(at+RegTID), uint32(p.tid))
}

// drop counts an entry as dropped.
func (p *producer) drop() { atomic.AddUint64(p.m.u64(p.slot(SlotDropped)), 1) }

// pop takes a chunk off a stack.
func (p *producer) pop(off uint64) (index1 uint32, ok bool) {
	for {
		head := atomic.LoadUint64(p.m.u64(off))
		if uint32(head) == 0 {
			return 0, false
		}
		below := atomic.LoadUint32(p.m.u32(NextOff - 4 + 4*uint64(uint32(head))))
		if atomic.CompareAndSwapUint64(p.m.u64(off), head, (head>>32+1)<<32|uint64(below)) {
			return uint32(head), true
		}
	}
}

// claim takes an event's place, and a new chunk when need be.
func (p *producer) claim() (*reel.Event, error) {
	word := atomic.AddUint64(p.m.u64(p.slot(SlotClaim)), Claim) - Claim
	if int64(word) >= 0 {
		i, ok := p.popSuitable()
		if !ok {
			atomic.StoreUint64(p.m.u64(p.slot(SlotClaim)), 0)
			return nil, errEmpty
		}
		p.install(i)
		word = atomic.AddUint64(p.m.u64(p.slot(SlotClaim)), Claim) - Claim
	}
	off := word<<(64-ClaimShift)>>(64-ClaimShift) - testBase - ChunksOff
	i, at := off>>SmallShift, off%SmallSize
	if small := uint64(p.m.small); i >= small {
		i, at = small+(off-small<<SmallShift)>>ChunkShift, (off-small<<SmallShift)%ChunkSize
	}
	return &p.m.events(uint32(i))[at/EventSize-ChunkHeader/EventSize], nil
}

// popSuitable takes a small chunk for a thread that hasn't had many, or when there are no others.
func (p *producer) popSuitable() (index1 uint32, ok bool) {
	if now := atomic.LoadUint32(p.m.u32(p.slot(SlotChunk))); now != 0 && atomic.LoadUint32(p.m.u32(p.m.chunk(now-1)+ChunkSeq)) >= SmallFirst {
		if i, ok := p.pop(HdrPool); ok {
			return i, true
		}
	}
	if i, ok := p.pop(HdrSmallPool); ok {
		return i, true
	}
	return p.pop(HdrPool)
}

// install makes a chunk the thread's own.
func (p *producer) install(index1 uint32) {
	first := testBase + p.m.chunk(index1-1) + ChunkHeader
	before := atomic.SwapUint32(p.m.u32(p.slot(SlotChunk)), index1)
	atomic.StoreUint64(p.m.u64(p.slot(SlotClaim)), uint64(-int64(p.m.capacity(index1-1)))<<ClaimShift|first)
	link := p.slot(SlotFirst)
	seq := p.m.u32(p.m.chunk(index1-1) + ChunkSeq)
	atomic.StoreUint32(seq, 1)
	if before != 0 {
		atomic.StoreUint32(seq, atomic.LoadUint32(p.m.u32(p.m.chunk(before-1)+ChunkSeq))+1)
		link = p.m.chunk(before-1) + ChunkNext
	}
	atomic.StoreUint32(p.m.u32(link), index1)
}

// put writes an event into its place, the word last.
func put(at *reel.Event, e reel.Event) {
	at.Time, at.SP = e.Time, e.SP
	atomic.StoreUint32(&at.Word, e.Word)
}

// event claims and writes one, or counts it as dropped.
func (p *producer) event(e reel.Event) bool {
	at, err := p.claim()
	if err != nil {
		if !e.IsExit() {
			atomic.AddUint64(p.m.u64(p.slot(SlotDropped)), 1)
		}
		return false
	}
	put(at, e)
	return true
}

// collector is a sink that keeps everything.
type collector struct {
	tid     int
	name    string
	events  []reel.Event
	dropped uint64
	lost    uint64
	fail    error
}

func (c *collector) Append(events []reel.Event) error {
	if c.fail != nil {
		return c.fail
	}
	c.events = append(c.events, events...)
	return nil
}

func (c *collector) Dropped(entries, exits, tick uint64) error {
	if entries == 0 && exits == 0 || entries > math.MaxInt64 || exits > math.MaxInt64 {
		return errors.New("a drop of nothing, or of less")
	}
	c.dropped += entries
	c.lost += exits
	return nil
}

// collect drains a memory into collectors.
func collect(m *Memory) (*Drainer, *[]*collector) {
	var all []*collector
	d := NewDrainer(m, func(tid, _ int, name string) (Sink, error) {
		c := &collector{tid: tid, name: name}
		all = append(all, c)
		return c, nil
	})
	return d, &all
}

func mustRound(t testing.TB, d *Drainer) int {
	t.Helper()
	n, err := d.Round()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantFree fails the test unless so many chunks are free.
func wantFree(t testing.TB, m *Memory, want int) {
	t.Helper()
	if n := inPool(t, m); n != want {
		t.Errorf("%d of %d chunks are free, not %d", n, m.chunks, want)
	}
}

// inPool counts the chunks on the stacks and fails when one is there twice or holds something.
func inPool(t testing.TB, m *Memory) int {
	t.Helper()
	seen := map[uint32]bool{}
	for _, head := range []uint64{HdrPool, HdrSmallPool, HdrReserve} {
		for i := uint32(atomic.LoadUint64(m.u64(head))); i != 0; i = atomic.LoadUint32(m.u32(NextOff - 4 + 4*uint64(i))) {
			if seen[i] {
				t.Fatalf("chunk %d is free twice", i-1)
			}
			seen[i] = true
			for k, e := range m.events(i - 1) {
				if e != (reel.Event{}) {
					t.Fatalf("free chunk %d has an event at %d: %+v", i-1, k, e)
				}
			}
		}
	}
	return len(seen)
}
