package ring

// Magic stands at the start of the memory, "callreel" in little-endian bytes.
const Magic = 0x6c6565726c6c6163

// Version is the layout's; a recorder that meets another leaves it alone.
const Version = 10

// MappingName is what /proc/PID/maps shows for the memory.
const MappingName = "/memfd:callreel"

// MemfdName is the name given to memfd_create.
const MemfdName = "callreel"

// Offsets of the header's fields from the start of the memory. Fields that the target's threads change stand on
// cache lines of their own.
const (
	HdrMagic       = 0    // u64
	HdrVersion     = 8    // u32
	HdrBase        = 24   // u64, address of the mapping in the target
	HdrSize        = 32   // u64, bytes mapped
	HdrHeartbeat   = 64   // u64, TSC of the recorder's last round
	HdrWaitLimit   = 72   // u64, ticks of the recorder's silence after which nothing waits for it any more
	HdrCloseLimit  = 80   // u64, ticks of its silence after which a dropping thread closes the gate
	HdrPool        = 128  // u64, head of the stack of free chunks: tag<<32 | index+1; in overwrite mode one of the Pool values
	HdrReserve     = 192  // u64, the same for chunks kept for the exits of accepted calls
	HdrRegistered  = 256  // u64, how many threads have registered
	HdrInSlow      = 320  // u64, how many threads are where code in the arenas makes system calls
	HdrSandboxed   = 384  // u64, how often the target was about to restrict its own system calls; the gates are closed for good then
	HdrFollow      = 512  // u64, 1 while forked children may open their gates; FollowSandboxed
	HdrExecs       = 576  // u64, how often a thread has asked to be awaited while it replaces its program
	HdrAsked       = 448  // u64, how often a thread has asked for a probe that isn't made yet
	HdrHand        = 640  // u64, of rings in overwrite mode: how often a chunk has been looked at for being overwritten
	HdrStarved     = 704  // u64, TSC when a thread last found none
	HdrStarveLimit = 712  // u64, ticks after that in which threads without a chunk don't look again
	HdrChunks      = 720  // u64, how many chunks there are, in overwrite mode
	HdrSmall       = 728  // u32, how many chunks are small: those from index 0 on
	HdrFired       = 768  // u32, how often a trigger has fired
	HdrFrozenAt    = 784  // u64, TSC of the exit of the call that froze the rings last
	HdrUntracked   = 776  // u64, calls that found no place in the table of tracked calls
	HdrArmed       = 832  // u64, 1 while one that fires has the rings freeze
	HdrGrace       = 840  // u64, what such a one makes of HdrPool
	HdrSmallPool   = 896  // u64, as HdrPool, of small chunks
	HdrLoads       = 1152 // u32, how often the loader has said that what it has mapped is complete; each is a number that a thread may wait for
	HdrLoadKind    = 1160 // u32, what it said last that it was about to do: RT_ADD or RT_DELETE of <link.h>
	HdrLoadsDone   = 1216 // u32, the recorder has seen to all up to this number
	HdrLoadsTaken  = 1220 // u32, and is at those up to this one
	HdrLoadWait    = 1224 // u64, 1 while threads are to wait for that; threads that have waited in vain make it 0
	HdrLoadAsk     = 1232 // u64, ticks that one waits for a recorder that shows no sign of life
	HdrLoadMost    = 1240 // u64, ticks that one waits in all
	HdrNamed       = 1280 // u32, 1 once a thread has named itself where that is seen, see NamesOff
	// ExecsOff are ExecSlots entries, in which threads ask for that in turn.
	ExecsOff  = 0x800
	ExecSlots = 64 // a power of two
	ExecShift = 4  // log2 of an entry's bytes
	// HdrGates is an array of u64 that ends with a 0: the gates of all arenas, which a hook closes. Arenas can be added.
	HdrGates = 0x1000
	// MaxGates bounds it.
	MaxGates = (NextOff-HdrGates)/8 - 1
)

// What HdrPool is in overwrite mode: 0 while the rings are frozen, that is while nothing is overwritten; PoolOpen; or, since a call has fired,
// PoolGrace times the number of chunks that threads may still take before the rings are frozen.
const (
	PoolOpen  = 1
	PoolGrace = 2
)

// What the word at PausedOff consists of. Its bytes have one writer each, or writers that agree: the recorder changes its bit by an atomic operation on the
// whole, the program's stubs store a byte. Where children are followed the program's is elsewhere, see stub.Config.Held.
const (
	PausedByRecorder = 1
	PausedSelf       = 1 // of its bytes
	// PausedAtFirst is the byte that the recorder sets where recording begins with a pause, which the program ends, too, when it goes on.
	PausedAtFirst = 2
)

// FollowSandboxed stands in HdrFollow when a child has restricted its own system calls: no child opens its gates from then on.
const FollowSandboxed = 2

// An entry of a thread that is about to replace its program, all u32: thread and process, as the target's namespace counts, and
// a state, which the thread makes ExecAsked and the recorder ExecGo; the thread, or the recorder, makes it 0 again.
const (
	ExecTID   = 0
	ExecPID   = 4
	ExecState = 8
	ExecAsked = 1
	ExecGo    = 2
)

// Offsets of the parts.
const (
	// NextOff is an array of u32: for each chunk on a stack the one below it, index+1.
	NextOff = 0x10000
	// MaxChunks is how many chunks of ChunkSize the memory may have, before some of them are divided: NextOff's array has room for all.
	MaxChunks = (RegistryOff-NextOff)/4 - MaxSmall
	// MaxSmall is how many small chunks there may be.
	MaxSmall = 1 << 17
	// RegistryOff is the ring of threads that wrote for the first time, in that order.
	RegistryOff   = 0x200000
	RegistrySize  = 1 << 16 // entries, a power of two
	RegistryEntry = 32      // bytes
	// AskedOff has a bit for each function, which threads set to ask for its probe. Only the pages in use exist, here and of
	// the slots.
	AskedOff = 0x400000
	// MaxFunctions is one above the highest function ID that has such a bit.
	MaxFunctions = (PausedOff - AskedOff) * 8
	// PausedOff is a cache line in front of the slots, where an event reaches it from their address by a short displacement: u32, 0 while events are
	// written. PausedByRecorder is the recorder's, the byte at PausedSelf the program's own. It isn't in the slot of thread 0, which nobody has: a
	// thread whose ID isn't known yet counts failed claims there.
	PausedOff = SlotsOff - 64
	// SlotsOff is one slot for each thread ID there can be.
	SlotsOff = 0x800000
	SlotSize = 64
	// MaxTID is one above the highest thread ID: PID_MAX_LIMIT of 64-bit Linux.
	MaxTID = 1 << 22
	// GoKeysOff has, for each thread ID there can be, the ID of the goroutine whose events the thread wrote last, u64; 0 is what
	// runs on the thread's own stack. Only Go programs have that.
	GoKeysOff = SlotsOff + MaxTID*SlotSize
	// NamesOff has, for each thread ID there can be, the name that the thread has given itself since it registered, where a stub has seen
	// that: 16 bytes, as prctl(PR_GET_NAME) gives, but for the last of them. That is NUL, and here a number that changes with each name;
	// 0 while there is none, or while it is being written.
	NamesOff  = GoKeysOff + MaxTID*8
	NameShift = 4
	NameSize  = 1 << NameShift
	// ChunksOff is where the chunks begin.
	ChunksOff = NamesOff + MaxTID*NameSize
)

// A registry entry: the name as of the first event, then the thread ID, which is stored last.
const (
	RegTID  = 0 // u32, 0 while the entry is not complete
	RegPID  = 4 // u32, the process, where forked children are followed
	RegName = 8 // 16 bytes, as prctl(PR_GET_NAME) gives
)

// A slot. All fields are written by its own thread only, but for the recorder's reset after the thread's death.
const (
	SlotClaim      = 0  // u64, the claim word (see Claim): what is left of the chunk
	SlotInSlow     = 8  // u64, its part of HdrInSlow: more than 1 when signal handlers have come in between
	SlotChunk      = 16 // u32, current chunk, index+1
	SlotMode       = 20 // u32, 1 while entries are dropped
	SlotMark       = 24 // u64, highest SP of an entry that was dropped in this mode
	SlotSpare      = 32 // u64, the claim word of the thread's spare chunk, while only exits are accepted; 0 without any
	SlotDropped    = 40 // u64, entries dropped
	SlotLostExits  = 48 // u64, exits lost since even the reserve was empty: of accepted calls, or of some dropped long before
	SlotFirst      = 56 // u32, the thread's first chunk, index+1; in overwrite mode how many it has had
	SlotRegistered = 60 // u32, 1 once the thread stands in the registry
)

// A claim word says in one word, so that one XADD of Claim takes an event out of it and tells where that is, how many
// events still fit, negated, in its upper 16 bits, and in the lower 48 the address of the next one in the target. One
// word, because a signal handler that changes the chunk may come between any two instructions. While it is not negative
// there is no room; the failed claims that it then counts are set back by the slow path before they could reach the
// sign (see ClaimOverflow).
const (
	Claim      = 1<<ClaimShift | EventSize
	ClaimShift = 48
	// ClaimOverflow is set in the upper half of a claim word that has counted 2^14 or more failed claims.
	ClaimOverflow = 1 << 30
	// ClaimEmpty is the upper 16 bits of the claim word of an empty chunk, in place.
	ClaimEmpty = (1<<16 - ChunkEvents) << ClaimShift
)

// A chunk: a header, then events.
const (
	ChunkSize  = 64 << 10
	ChunkShift = 16
	ChunkNext  = 0 // u32, the thread's next chunk, index+1, once this one is full
	ChunkTID   = 4 // u32
	// ChunkDrained is how many of its events the recorder has taken, u32. A thread that gets no other chunk may start a
	// full one over once all are taken, and sets this back to 0 then: that is how the recorder knows.
	ChunkDrained = 8
	// The others are of overwrite mode.
	ChunkState = 12 // u32, a state, and from bit ChunkChanges on how often it has changed
	ChunkSeq   = 16 // u32, its number among the thread's chunks; in the other mode from 1, and known to threads alone
	ChunkSpare = 20 // u32, 1 for one out of the reserve
	ChunkFrom  = 24 // u64, TSC when the thread got it
	ChunkTo    = 32 // u64, TSC when it got the next; 0 before
	ChunkHand  = 40 // u64, HdrHand then
	// ChunkHeader is the header's size. Where an event before the first would have its word is 0 at all times.
	ChunkHeader = 64
	// ChunkEvents is how many events a chunk holds.
	ChunkEvents = (ChunkSize - ChunkHeader) / EventSize
)

// A small chunk is a part of one of the others, and has the same header. A thread's first SmallFirst chunks are small if there are any,
// and so are later ones when there are no others: so that there is room for many threads, and no more is taken up by one that makes few
// calls. They come before the others, in memory and in number.
const (
	SmallShift  = 11
	SmallSize   = 1 << SmallShift
	SmallEvents = (SmallSize - ChunkHeader) / EventSize
	SmallFirst  = 32
	// perChunk is how many of them a chunk is divided into.
	perChunk = ChunkSize / SmallSize
)

// An event with its payload must fit.
var _ [SmallEvents - 1 - MaxPayload]struct{}

// States of a chunk in overwrite mode.
const (
	ChunkApart   = 0 // in the reserve, or in the recorder's hands
	ChunkOwned   = 1 // a thread's current one
	ChunkFull    = 2 // of a thread that has gone on to another, or empty: the oldest is overwritten
	ChunkTaken   = 3 // being made a thread's own
	ChunkStates  = 3 // mask
	ChunkChanges = 2
)

// An event, the memory form of reel.Event.
const (
	EventSize = 16
	EventTime = 0  // u64, TSC
	EventSP   = 8  // u32, low half of the stack pointer at the function's entry
	EventWord = 12 // u32, function ID<<1, plus 1 for an exit; stored last
)

// The passing of a marker is an event, too: one of neither an entry nor an exit. Its word's upper two bits are those of MarkWord; no function
// has so high an ID. Its stack pointer is eight bytes below the thread's, so that no call's is the same that was open then.
const (
	MarkMask = 0xC0000001
	MarkWord = 0x40000000
	// MaxMarks is one above the highest number of a marker.
	MaxMarks = 1 << 20
)

// MarkID is what marker n, counted from 1, has in place of a function's ID.
func MarkID(n uint32) uint32 { return MarkWord>>1 | n }

// IsMarkID says whether an ID is a marker's, IsMark whether the word of an event is.
func IsMarkID(id uint32) bool { return id&(MarkMask>>1) == MarkWord>>1 }

// IsMark says whether an event with this word is the passing of a marker.
func IsMark(word uint32) bool { return word&MarkMask == MarkWord }

// MarkOf is the number of the marker of an event with this word, which IsMark: it may be any, as the target has written it.
func MarkOf(word uint32) uint32 { return word &^ MarkMask >> 1 }

// A payload event carries PayloadBytes of data, in the fields before its word, of the event of the same thread before it: values of
// arguments, or a result. An event is claimed together with its payload, and its own word is stored last of all. No function has so
// high an ID. Of the word's other bits the ones from PayloadIndexShift on number it, from 0, and those from PayloadCountShift on
// say how many there are. One of none at all only fills the end of a chunk that has no room for all.
const (
	PayloadMask       = 0xC0000001
	PayloadWord       = 0xC0000000
	PayloadIndexShift = 1
	PayloadCountShift = 9
	PayloadBytes      = 12
	// MaxPayload is how many payload events one event may have.
	MaxPayload = 64
)

// Behind all else, in a Go program, is a stack for each thread ID there can be, on which the slow path runs: goroutines' have no room.
const (
	GoStackShift = 9
	GoStackSize  = 1 << GoStackShift
	GoStacksSize = MaxTID * GoStackSize
)

// Behind that, where a recording needs them, is an area for each thread ID there can be, which only the thread itself writes: its open
// stack, see package probe. Only the pages in use exist.
const (
	AreaShift = 10
	AreaSize  = 1 << AreaShift
	AreasSize = MaxTID * AreaSize
	// AreaTop is the open stack's top, u64: how many records there are, and in the upper half how often it has changed.
	AreaTop = 0
	// AreaOpen are the records, each a u64: the low half of the stack pointer at the function's entry, and the word of the entry's event.
	AreaOpen = 64
	// MaxOpen is how many records there may be.
	MaxOpen = (AreaSize - AreaOpen) / 8
)

// And, where values of arguments are recorded, room for each thread ID there can be, in which the thread gathers them.
const (
	ArgsShift = 10
	ArgsSize  = MaxTID << ArgsShift
	ArgsCount = 0  // u64: payload events, or less than 0 for an event that isn't to be written
	ArgsNext  = 8  // u64, the address where the next value goes
	ArgsLocal = 16 // struct iovec, what is read goes there
	ArgsFrom  = 32 // struct iovec [2], what is read, in two pages
	ArgsTemp  = 64 // u64 [2]
	ArgsTime  = 80 // u64, TSC before the values of a return were gathered
	ArgsOpen  = 88 // u64, 1 for an entry that is to be put on the open stack
	ArgsData  = 128
	// ArgsResults are ResultSlots places, which functions share, of 1<<ResultShift bytes: an entry notes where its call's result is to go, for the
	// return. They are behind the most that there may be of a payload.
	ArgsResults = ArgsData + MaxPayload*PayloadBytes
	ResultSlots = 8
	ResultShift = 4
	ResultAddr  = 0  // u64, stored last
	ResultSP    = 8  // u32, low half of the stack pointer at the function's entry
	ResultWord  = 12 // u32, the word of the exit's event
)

// There is room for them.
var _ [1<<ArgsShift - ArgsResults - ResultSlots<<ResultShift]struct{}

// And, where arguments are kept of calls that may come to wait, room for each thread ID there can be: KeptSlots places, which functions
// share. An entry puts its argument there; an exit that comes long after lets these follow its event, as payload events that are claimed
// behind it: the first argument and KeptSP, KeptTime and KeptWord, and the second argument if there is one.
const (
	KeptShift     = 9
	KeptSize      = MaxTID << KeptShift
	KeptSlotShift = 5
	KeptSlots     = 1 << (KeptShift - KeptSlotShift)
	KeptFirst     = 0  // u64, the first argument; stored last
	KeptSP        = 8  // u32, low half of the stack pointer at the function's entry
	KeptWord      = 12 // u32, the word of the exit's event
	KeptTime      = 16 // u64, TSC at the entry
	KeptSecond    = 24 // u64, the second argument
	// KeptEvents is how many payload events there are, of a function of which two arguments are kept one more.
	KeptEvents = 2
)

// Behind that, where functions have triggers, are the predicates, what they have fired, and a table of the tracked calls that are
// open: of calls, not of threads, since a goroutine's go from thread to thread.
const (
	PredicatesSize = OpenCallsOff + OpenCalls<<OpenCallShift
	// PredicatesOff are MaxPredicates conditions, of 1<<PredicateShift bytes.
	PredicatesOff  = 0
	PredicateShift = 6
	MaxPredicates  = 64
	// FiringsOff is a ring of what fired.
	FiringsOff  = MaxPredicates << PredicateShift
	FiringShift = 6
	Firings     = 64 // a power of two
	// FreezerOff is the firing that froze the rings last.
	FreezerOff   = FiringsOff + Firings<<FiringShift
	OpenCallsOff = FreezerOff + 1<<FiringShift
	// OpenCalls is how many places the table has, a power of two. A call may stand in any of OpenCallTries from its own on.
	OpenCalls     = 1 << 12
	OpenCallShift = 5
	OpenCallTries = 32
)

// A predicate. It fires at the exit of a call for which the value that it is about is between two bounds, or isn't.
const (
	PredicateKind   = 0  // u32, see below
	PredicateShiftL = 4  // u32, by how many bits a result is shifted left, and then right again, to have the width of its type
	PredicateSign   = 8  // u32, 1 if its type is signed
	PredicateNot    = 12 // u32, 1 if it fires outside of the bounds
	PredicateLow    = 16 // i64
	PredicateHigh   = 24 // i64, both included
	PredicateCalls  = 32 // u64, entries of the function, counted in the first of its predicates

	PredicateOff      = 0
	PredicateDuration = 1 // the value is the call's duration, in ticks
	PredicateNumber   = 2 // … its number among the calls of the function, from 1
	PredicateResult   = 3 // … what it returns in RAX
)

// A firing. The number is stored last.
const (
	FiringNumber    = 0  // u32, from 1; 0 while it isn't complete
	FiringPredicate = 4  // u32
	FiringCtx       = 8  // u64, as OpenCtx
	FiringSPWord    = 16 // u64, as OpenSPWord
	FiringFrom      = 24 // u64, TSC behind the entry
	FiringTo        = 32 // u64, TSC at the exit
	FiringResult    = 40 // u64, RAX
	FiringTID       = 48 // u32
)

// An open call.
const (
	OpenCtx    = 0  // u64, thread ID, of a Go program the goroutine's
	OpenSPWord = 8  // u64, SP and word of the entry's event; 0 for a free place
	OpenFrom   = 16 // u64, TSC; 0 while the rest isn't there
	OpenNumber = 24 // u64, among the calls of its function; OpenFired is set when the recorder has taken it for one that doesn't return
	OpenFired  = 1 << 63
)

// Size is the bytes of memory for that many chunks.
func Size(chunks int) uint64 { return ChunksOff + uint64(chunks)*ChunkSize }
