package stub

import "github.com/callreel/callreel/recorder/internal/golang"

// Clock says which events carry the time.
type Clock uint8

// The clock modes of `record --clock`.
const (
	ClockFull Clock = iota
	ClockExit
	ClockNone
)

// Reads says whether an event of the kind carries the time.
func (c Clock) Reads(exit bool) bool { return c == ClockFull || c == ClockExit && exit }

// Config is what the stubs of an arena are asked to do, and what they are told about the process they will run in. It never changes once
// code is made of it. All addresses are the target's.
type Config struct {
	// TIDOffset is where, from the FS base, the C library keeps the thread's kernel ID.
	TIDOffset int32
	// NoTLS says that it keeps none, so that the thread is told by its stack, or by the kernel: see GateThread.
	NoTLS bool
	// DescriptorAt, with NoTLS, is where, from the FS base, the C library keeps a pointer to the thread's descriptor, and DescriptorID where
	// that has the thread's kernel ID; 0 if it isn't known to do so. Where the pointer is null, or the ID less than 0, as Android's has it
	// while it forks, the thread is told as without. Forked children that are followed are always told so.
	DescriptorAt, DescriptorID int32
	// Gate is the address of the 8-byte gate word in the arena's data page, within ±2 GiB of the code: the address of
	// the slots while recording, else 0 or less, see CloseGate. The page is MADV_WIPEONFORK, so that a forked child finds 0.
	Gate uint64
	// Ring is where the ring memory is mapped.
	Ring uint64
	// Clock says which events read the time-stamp counter.
	Clock Clock
	// Min makes exits take back the entries of calls that were shorter than ring.HdrMin.
	Min bool
	// Depth lets calls be recorded only that have fewer than ring.HdrDepth recorded ones above them, Inside those of functions that
	// are stub.Probe.Inside and what they call. Both need Areas.
	Depth, Inside bool
	// Every, if not 0, lets one in so many of the calls of each function be recorded that are chosen else; at Counts is, by function ID, how
	// many there were, u64 each.
	Every  uint32
	Counts uint64
	// Threads makes stubs look whether their thread is one to be recorded.
	Threads bool
	// Lossless makes a thread wait for a chunk while the recorder is alive.
	Lossless bool
	// Predicates is the address of the conditions of an armed recording, see ring.PredicatesSize; 0 if there are none.
	Predicates uint64
	// Overwrite makes a thread take the oldest chunk when there is no other.
	Overwrite bool
	// Follow lets forked children be recorded; Anchor is the gate of the first arena.
	Follow bool
	Anchor uint64
	// Held is where, if children are followed, each process keeps whether it has paused its recording itself: u32, in memory of its own that
	// forked children inherit. It is 0 where they aren't; ring.PausedOff says it then.
	Held uint64
	// GoSays are, in a Go program, the IDs of the markers that functions which pause its recording write, or let it go on: SayPause and SayResume,
	// less one. With 0 they aren't obeyed.
	GoSays [2]uint32
	// Says are what markers say to the recording, by their IDs.
	Says map[uint32]Say
	// Loads lets the recorder be told, and waited for, when the dynamic loader has loaded libraries. LoaderState is the address of the state
	// that the loader keeps for debuggers, u32, 0 if it isn't known.
	Loads       bool
	LoaderState uint64
	// Names lets the names be kept that threads give themselves.
	Names bool
	// Areas is the address of the threads' areas, see ring.AreaSize; 0 if there are none.
	Areas uint64
	// Captures are those of functions, by their IDs. Args is the address of the threads' argument buffers, see
	// ring.ArgsSize.
	Captures map[uint32]*Captures
	Args     uint64
	// Keeps says of which functions arguments are kept, by their IDs; not in a Go program, and with ClockFull alone. Kept is the address of
	// the room for them, see ring.KeptSize.
	Keeps map[uint32]Keep
	Kept  uint64
	// MarkTriggers are what markers have of triggers, by their IDs.
	MarkTriggers map[uint32][]MarkTrigger
	// Go is set if the process is a Go program, whose stubs are of another kind.
	Go *golang.Runtime
	// Lazy lets probes be made on the first call.
	Lazy bool
	// HWCap and HWCap2 are what AT_HWCAP and AT_HWCAP2 tell the process of its processor, of which stubs go by what they need: on arm64
	// whether there are atomic instructions, SVE and SME.
	HWCap, HWCap2 uint64
}

// Say is what a marker says to the recording.
type Say uint8

// A program pauses its own recording, and goes on. Stubs obey at once, and write the marker's event whether it is paused or not.
const (
	SayNothing Say = iota
	SayPause
	SayResume
)

// Chooses says whether entries are chosen: not each call is recorded.
func (c *Config) Chooses() bool { return c.Depth || c.Inside || c.Every > 0 }

// KeepsAll says whether all calls that are recorded have a record on their thread's open stack.
func (c *Config) KeepsAll() bool { return c.Depth || c.Every > 0 }

// MarkTrigger is a trigger that a marker has a part in: it begins what the trigger is about, or ends it, or, for a trigger that is about the
// marker's passing, both. Key is in place of a function's ID, the same for all markers that begin and end the same.
type MarkTrigger struct {
	Predicates Predicates
	Key        uint32
	Begin, End bool
}

// Predicates says which of the predicates are a function's: Count from First on. None is for one that has no condition.
type Predicates struct{ First, Count uint8 }
