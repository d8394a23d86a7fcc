package reel

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// ChunkKind says what a chunk's payload holds.
type ChunkKind uint8

// The kinds of format version 1. Readers skip kinds that they do not know; those from KindTimeline on came later.
const (
	KindHeader    ChunkKind = 1  // the Header
	KindImages    ChunkKind = 2  // Images, in order of their IDs
	KindFunctions ChunkKind = 3  // Functions, with consecutive IDs
	KindThread    ChunkKind = 4  // a Thread, or its new name
	KindEvents    ChunkKind = 5  // Events of one thread
	KindDrops     ChunkKind = 6  // Drops of one thread
	KindClock     ChunkKind = 7  // a ClockPair
	KindIndex     ChunkKind = 8  // the index: always last; older ones may stand among the chunks
	KindTimeline  ChunkKind = 9  // summaries for a screen: see package timeline
	KindDump      ChunkKind = 10 // what the reel is a Dump of
	KindArgs      ChunkKind = 11 // values of arguments and results, see Value
	KindMade      ChunkKind = 12 // how many calls of each function there were, where not all are recorded
	KindStacks    ChunkKind = 13 // where stacks of one thread begin, see Writer.StackTops
	KindNames     ChunkKind = 14 // names, files and lines that became known later, see File.Appendix

	KindSched      ChunkKind = 15 // what the scheduler did with threads, see SchedEvent
	KindScheduling ChunkKind = 16 // how that was learned: Scheduling
	KindWaits      ChunkKind = 17 // what threads waited for: Waits
	KindSchedSums  ChunkKind = 18 // the kernel's own sums of threads: SchedSums
	KindMarkers    ChunkKind = 19 // Markers, with consecutive IDs
	KindMarks      ChunkKind = 20 // Marks of one thread
	KindPauses     ChunkKind = 21 // a Pause
	KindOffs       ChunkKind = 22 // Offs
	KindBudget     ChunkKind = 23 // a Budget
)

// String returns the kind in words.
func (k ChunkKind) String() string {
	switch k {
	case KindHeader:
		return "header"
	case KindImages:
		return "images"
	case KindFunctions:
		return "functions"
	case KindThread:
		return "thread"
	case KindEvents:
		return "events"
	case KindDrops:
		return "drops"
	case KindClock:
		return "clock"
	case KindIndex:
		return "index"
	case KindTimeline:
		return "timeline"
	case KindDump:
		return "dump"
	case KindArgs:
		return "arguments"
	case KindMade:
		return "calls made"
	case KindStacks:
		return "stacks"
	case KindNames:
		return "names"
	case KindSched:
		return "threads' states"
	case KindScheduling:
		return "scheduling"
	case KindWaits:
		return "waits"
	case KindSchedSums:
		return "sums of states"
	case KindMarkers:
		return "markers"
	case KindMarks:
		return "marks"
	case KindPauses:
		return "pauses"
	case KindOffs:
		return "functions off"
	case KindBudget:
		return "budget"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A chunk starts with its frame, 48 bytes:
//
//	 0  magic   4 bytes, "\x8areL"
//	 4  kind    1 byte
//	 5  mode    1 byte, of events: the ClockMode they are coded under
//	 6          2 bytes, zero
//	 8  length  4 bytes, of the payload
//	12  thread  4 bytes, key of the thread that the chunk belongs to, or 0
//	16  count   4 bytes, how many events, functions … the payload holds
//	20  seq     4 bytes, of events: number of the chunk in its thread, from 0
//	24  first   8 bytes, first and highest Time of the events, in ticks
//	32  last    8 bytes
//	40  sum     4 bytes, CRC-32C of the payload
//	44  check   4 bytes, CRC-32C of the 44 bytes before
const (
	frameSize  = 48
	frameMagic = "\x8areL"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a chunk's frame, decoded.
type frame struct {
	kind   ChunkKind
	mode   ClockMode
	length uint32
	thread uint32
	count  uint32
	seq    uint32
	first  uint64
	last   uint64
	sum    uint32
}

// put writes the frame of payload to b, which has frameSize bytes. It fills in
// length and sum.
func (f *frame) put(b, payload []byte) {
	f.length = uint32(len(payload))
	f.sum = crc32.Checksum(payload, castagnoli)
	f.write(b)
}

// write writes the frame as it is.
func (f *frame) write(b []byte) {
	copy(b, frameMagic)
	b[4], b[5], b[6], b[7] = byte(f.kind), byte(f.mode), 0, 0
	le := binary.LittleEndian
	le.PutUint32(b[8:], f.length)
	le.PutUint32(b[12:], f.thread)
	le.PutUint32(b[16:], f.count)
	le.PutUint32(b[20:], f.seq)
	le.PutUint64(b[24:], f.first)
	le.PutUint64(b[32:], f.last)
	le.PutUint32(b[40:], f.sum)
	le.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
}

// parseFrame decodes the frame at the start of b and reports whether it is
// whole: there is one, and its own checksum is right.
func parseFrame(b []byte) (f frame, ok bool) {
	if len(b) < frameSize || string(b[:4]) != frameMagic {
		return f, false
	}
	le := binary.LittleEndian
	if le.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return f, false
	}
	return frame{
		kind:   ChunkKind(b[4]),
		mode:   ClockMode(b[5]),
		length: le.Uint32(b[8:]),
		thread: le.Uint32(b[12:]),
		count:  le.Uint32(b[16:]),
		seq:    le.Uint32(b[20:]),
		first:  le.Uint64(b[24:]),
		last:   le.Uint64(b[32:]),
		sum:    le.Uint32(b[40:]),
	}, true
}

// Chunk says where a chunk of events is and what it holds.
type Chunk struct {
	// Offset is where the chunk's frame starts in the file, in bytes.
	Offset int64
	// Bytes is the length of its payload.
	Bytes int
	// Thread is the key of its thread, as in Thread.Key.
	Thread uint32
	// Seq numbers the chunks of a thread from 0; a missing number is a chunk
	// lost.
	Seq uint32
	// Events is how many events it holds.
	Events int
	// First and Last are the first and the highest Time of its events, in
	// ticks; 0 when none carries a time.
	First, Last uint64

	mode ClockMode
	sum  uint32
}
