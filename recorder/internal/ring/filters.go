package ring

// HdrMin is where in the header it stands how many ticks a call must take for its events to be kept, u64, in recordings in which
// exits take entries back.
const HdrMin = 1024

// HdrDepth is how many recorded calls there may be above one another, u32, in recordings where that is bounded.
const HdrDepth = 1088

// MaxDepth is the most that it may say: as many as an open stack has room for, less some for other stacks of the thread.
const MaxDepth = 100

// CountsSize is the memory for a u64 for each function ID, in which threads count calls, in recordings of one in so many. It is a multiple of
// all sizes of pages.
const CountsSize = (SlotsOff - AskedOff) * 8 * 8

// TakingOff has, for each thread ID there can be, the address behind the event that the thread is about to take back, u64; else 0.
// It is for other programs' threads what GoKeysOff is for those of a Go program, in which no signal handler writes events.
const TakingOff = GoKeysOff

// registeredOff stands in SlotRegistered while a thread is to write nothing, in recordings of some of the threads. The recorder puts it
// there.
const registeredOff = 2
