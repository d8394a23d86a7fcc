package reel

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"sync"
)

// ErrFormat says that a file is not a reel, or one of a version that is newer
// than this package.
var ErrFormat = errors.New("not a reel that can be read")

// File is a reel opened for reading. Its methods may be called from several
// goroutines at once.
type File struct {
	name   string
	data   []byte
	unmap  func([]byte) error
	closed bool

	header    Header
	images    []Image
	functions functionTable
	threads   []threadChunks
	byKey     map[uint32]int // index into threads
	drops     []Drop
	clocks    []ClockPair
	ticks     *TickClock
	firstTick uint64
	lastTick  uint64
	lastClock uint64 // of clock pairs
	events    uint64
	goexit    uint32 // ID of the function by which goroutines end, see Ends; 0 if there is none

	arguments map[uint64][]Argument // by signature

	dump *Dump // nil if the reel is none

	every uint32            // see Made
	made  map[uint32]uint64 // by function

	scheduling *Scheduling // nil if nothing is said
	markers    []Marker
	pauses     []Pause
	begun      map[pauseKey]int // of pauses, the places of those whose end hasn't come
	paused     struct {
		sync.Mutex
		of int              // pauses, when it was made
		at map[int][]uint64 // when they began, by process, in order
	}
	marks uint64 // how many

	offs    []Off   // see Offs
	lastOff uint64  // tick that they tell of
	budget  *Budget // nil if there was none

	known uint64 // up to when states of threads are known, in ticks

	timeline indexEntry // of the chunk that Timeline returns; none if its length is 0

	attached attached
	namer    Namer // nil for the names that the reel has

	decoders sync.Pool
	damage   damageLog
}

// threadChunks is a thread and its chunks in order.
type threadChunks struct {
	Thread
	events uint64
	chunks []Chunk
	values []indexEntry // of KindArgs
	tops   []uint32     // see StackTops
	states []schedSection
	waits  []Wait
	sums   *SchedSums   // nil if they aren't known
	marks  []indexEntry // of KindMarks
}

// Open opens the reel at path. The file is mapped into memory where the system
// can do that; Close unmaps it. A reel that is still being written is read as
// far as it has come.
//
// Only a file in which no chunk can be found, or one of a newer version, is
// refused, with ErrFormat; any other damage is skipped and told by Damage.
func Open(path string) (*File, error) {
	data, unmap, err := mapFile(path)
	if err != nil {
		return nil, fmt.Errorf("reel: %w", err)
	}
	return parseMapped(path, data, unmap)
}

// openFile is Open for a file that is open, which may be closed then.
func openFile(name string, f *os.File) (*File, error) {
	data, unmap, err := mapOpened(name, f)
	if err != nil {
		return nil, fmt.Errorf("reel: %w", err)
	}
	return parseMapped(name, data, unmap)
}

func parseMapped(path string, data []byte, unmap func([]byte) error) (*File, error) {
	f, err := Parse(path, data)
	if err != nil {
		return nil, errors.Join(err, unmap(data))
	}
	f.unmap = unmap
	return f, nil
}

// Parse reads a reel from memory; name is what errors call it. The File keeps
// data, which must not change.
func Parse(name string, data []byte) (*File, error) {
	f := &File{name: name, data: data, byKey: make(map[uint32]int)}
	f.decoders.New = func() any { return new(decoder) }
	err := CatchFaults(f.load)
	if err != nil {
		return nil, fmt.Errorf("reel: %s: %w", name, err)
	}
	return f, nil
}

// Close releases the file. Nothing of it may be decoded afterwards; what was
// returned before stays valid.
func (f *File) Close() error {
	if f.unmap == nil {
		return nil
	}
	err := f.unmap(f.data)
	f.unmap, f.data = nil, nil
	return err
}

// Forget gives back the memory that the file's pages take, as far as that is known to the system as its own: they are read again when they
// are needed. Who reads all of a large file calls it now and then.
func (f *File) Forget() {
	if f.unmap != nil && len(f.data) > 0 {
		forgetMapped(f.data)
	}
}

// load finds the chunks and reads all but the events.
func (f *File) load() error {
	entries, ok := indexed(f.data)
	f.closed = ok
	if !ok {
		entries = scan(f.data, &f.damage)
		f.closed = ended(f.data, entries)
	}
	if len(entries) == 0 {
		if bytes.HasPrefix(f.data, []byte(frameMagic)) {
			return fmt.Errorf("%w: its only chunk is incomplete (%d bytes)", ErrFormat, len(f.data))
		}
		return fmt.Errorf("%w: no chunk found in its %d bytes; is this the file that record wrote?", ErrFormat, len(f.data))
	}
	if entries[0].kind != KindHeader {
		f.damage.add(Damage{Offset: 0, What: "the header is lost: times and the name of the program are not known"})
	}
	for i := range entries {
		if err := f.loadChunk(&entries[i]); err != nil {
			return err
		}
	}
	f.checkOrder()
	if f.dump == nil { // a dump ends with its window, and is written after that
		f.lastTick = max(f.lastTick, f.lastClock, f.lastOff)
	}
	f.joinOffs()
	f.firstTick = f.findFirstTick()
	if f.header.Goroutines {
		f.goexit = f.findGoexit()
	}
	if f.header.Clock.Mode != ClockNone && f.header.Clock.BaseUnixNS != 0 {
		f.clocks = append(f.clocks, ClockPair{f.header.Clock.BaseTick, f.header.Clock.BaseUnixNS})
	}
	f.ticks = newTickClock(f.header.Clock.TicksPerSecond, f.clocks)
	return nil
}

func (f *File) loadChunk(e *indexEntry) error {
	if e.kind == KindEvents {
		f.addEvents(e)
		return nil
	}
	switch {
	case e.kind == KindTimeline:
		f.timeline = *e
		return nil
	case e.kind == KindArgs && e.thread != 0:
		t := f.thread(e.thread)
		t.values = append(t.values, *e)
		return nil
	case e.kind == KindMarks:
		f.addMarks(e)
		return nil
	}
	payload, err := f.payload(e)
	if err == nil {
		err = f.loadTable(e, payload)
	}
	if errors.Is(err, ErrFormat) {
		return err
	}
	if err != nil {
		f.damage.add(Damage{Offset: e.offset, Len: frameSize + int64(e.length), What: fmt.Sprintf("%v: %v", e.kind, err)})
	}
	return nil
}

// payload returns the chunk's payload if its checksum is right.
func (f *File) payload(e *indexEntry) ([]byte, error) {
	start := e.offset + frameSize
	payload := f.data[start : start+int64(e.length)]
	if crc32.Checksum(payload, castagnoli) != e.sum {
		return nil, errors.New("checksum of the payload is wrong")
	}
	if g, whole := parseFrame(f.data[e.offset:]); !whole || g != e.frame {
		f.damage.add(Damage{Offset: e.offset, Len: frameSize, What: fmt.Sprintf("frame of a chunk (%v) is damaged; nothing is lost, as the index has it too", e.kind)})
	}
	return payload, nil
}

func (f *File) loadTable(e *indexEntry, payload []byte) error {
	switch e.kind {
	case KindHeader:
		h, err := parseHeader(payload)
		if err != nil && h.Version > Version {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if e.offset == 0 || f.header.Version == 0 {
			f.header = h
		}
		return err
	case KindImages:
		first, images, err := parseImages(payload, e.count)
		if int(first) != len(f.images)+1 && err == nil {
			// Images before these are lost; leave room for them if that is
			// plausible, so that IDs stay what they are.
			if int(first) <= len(f.images) || int(first) > len(f.images)+1<<16 {
				return fmt.Errorf("image %d follows image %d", first, len(f.images))
			}
			f.images = append(f.images, make([]Image, int(first)-1-len(f.images))...)
		}
		f.images = append(f.images, images...)
		return err
	case KindFunctions:
		first, functions, err := parseFunctions(payload, e.count)
		if addErr := f.functions.add(first, functions); addErr != nil {
			return addErr
		}
		return err
	case KindThread:
		t, err := parseThread(payload, e.thread)
		if err != nil {
			return err
		}
		f.thread(e.thread).Thread = t
	case KindDrops:
		drops, err := parseDrops(payload, e.thread, e.count)
		f.thread(e.thread)
		f.drops = append(f.drops, drops...)
		return err
	case KindArgs:
		all, err := parseArguments(payload, e.count)
		if f.arguments == nil {
			f.arguments = map[uint64][]Argument{}
		}
		maps.Copy(f.arguments, all)
		return err
	case KindClock:
		c, err := parseClockPair(payload)
		if err != nil {
			return err
		}
		f.clocks = append(f.clocks, c)
		f.lastClock = max(f.lastClock, c.Tick)
	case KindNames:
		return f.loadNames(payload, e.count)
	case KindMade:
		return f.loadMade(payload, e.count)
	case KindStacks:
		i, ok := f.byKey[e.thread]
		if !ok {
			return fmt.Errorf("of thread %d, which there is not", e.thread)
		}
		tops, err := parseTops(payload, e.count)
		f.threads[i].tops = tops
		return err
	case KindSched:
		return f.loadSched(e, payload)
	case KindScheduling:
		s, err := parseScheduling(payload)
		f.scheduling = &s
		return err
	case KindWaits:
		return f.loadWaits(payload, e.count)
	case KindSchedSums:
		return f.loadSchedSums(payload, e.count)
	case KindMarkers:
		return f.loadMarkers(payload, e.count)
	case KindPauses:
		return f.loadPause(payload)
	case KindOffs:
		return f.loadOffs(payload, e.count)
	case KindBudget:
		b, err := parseBudget(payload)
		if err == nil {
			f.budget = b
		}
		return err
	case KindDump:
		d, err := parseDump(payload)
		f.dump = &d // what precedes damage is of use
		f.lastTick = max(f.lastTick, d.To)
		return err
	}
	return nil
}

// thread returns the thread with the key, which is made if nothing was heard of
// it: its description may be lost.
func (f *File) thread(key uint32) *threadChunks {
	i, ok := f.byKey[key]
	if !ok {
		i = len(f.threads)
		f.byKey[key] = i
		f.threads = append(f.threads, threadChunks{Thread: Thread{Key: key}})
	}
	return &f.threads[i]
}

func (f *File) addEvents(e *indexEntry) {
	if e.count == 0 {
		return
	}
	t := f.thread(e.thread)
	t.chunks = append(t.chunks, Chunk{
		Offset: e.offset, Bytes: int(e.length), Thread: e.thread, Seq: e.seq,
		Events: int(e.count), First: e.first, Last: e.last, mode: e.mode, sum: e.sum,
	})
	// A chunk whose count is a lie fails when it is decoded; until then it must
	// not make the sum absurd.
	t.events += min(uint64(e.count), uint64(e.length))
	f.events += min(uint64(e.count), uint64(e.length))
	f.lastTick = max(f.lastTick, e.last)
}

// checkOrder tells of chunks that are missing from the numbering of their
// thread though nothing around them is damaged.
func (f *File) checkOrder() {
	if len(f.damage.list) > 0 {
		return // that is what they are missing for
	}
	for i := range f.threads {
		next := uint32(0)
		for _, c := range f.threads[i].chunks {
			if c.Seq != next {
				f.damage.add(Damage{Offset: c.Offset, What: fmt.Sprintf("thread %d (%s): chunk %d where chunk %d should be", f.threads[i].TID, f.threads[i].Name, c.Seq, next)})
			}
			next = c.Seq + 1
		}
	}
}
