package target

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/owner"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// Target is one process that is recorded, and what has been put into it. New makes one. What is exported without a word of Mu belongs to who
// records; of that, what says "before" is set before memory is mapped and doesn't change from then on.
type Target struct {
	Process *process.Process
	Images  []*mapped.Image
	Loader  *mapped.Image // of these, that with the dynamic loader; nil if there is none
	Arenas  []*Arena
	Ranges  []IDRange // in the order of their IDs
	// SearchedImages are the mappings in which images were looked for.
	SearchedImages []process.Mapping
	// Runtime is what stubs are told. FirstStack is what they are told besides where Runtime.NoTLS is set.
	Runtime    stub.Config
	FirstStack process.FirstStack
	// Go is the program, if it is one in Go, see BeGo.
	Go *golang.Program
	// Skipped are the functions, by their IDs, inside whose sites goroutines were preempted: they are not recorded.
	Skipped map[uint32]bool

	// Owner says in the recovery memory that we live. Set before, if it is to be shared with other targets; nil for one of its own.
	Owner *owner.Owner
	// Unsigned is told why the recovery memory isn't signed. ArenaMade is told of each arena whose code is made, before its gate opens, and
	// its error ends that. Both are set before, and may be nil.
	Unsigned func(error)
	// Uncounted is told which semaphore of markers can't be counted, and why. Set before; it may be nil.
	Uncounted func(error)
	ArenaMade func(*Arena) error
	// Unrecorded is told which slot of an import isn't written, and why. Set before; it may be nil.
	Unrecorded func(error)

	// Memory is the ring memory, as it is mapped here, FD its memfd, -1 when there is none, and RingFile what that is. Size, in bytes, is set
	// before, and so is Records, how many bytes of recovery records there may be.
	Memory   *ring.Memory
	FD       int
	RingFile process.Memfd
	Size     uint64
	Records  uint64
	// Where parts of the ring memory begin, in bytes, 0 for one that isn't needed; set before: the stacks of a Go program's threads, the
	// buffers for arguments, the counts of calls, the threads' areas, the predicates, and the room for arguments that are kept.
	GoStacks, ArgBuffers, Counts, Areas, Predicates, Kept uint64
	// MayRead says whether stubs may read values in the process's memory: whether no thread's filter forbids it. It is known once memory is
	// mapped, if there are buffers for arguments.
	MayRead bool

	// GatesClosed is when detach began to close the gates, 0 until then.
	GatesClosed reel.ClockPair
	// Stopped is for how long the process was stopped for attaching.
	Stopped time.Duration

	// Mu guards Arenas, and which gates are open, against who reads them, or opens and closes gates, while libraries are added. Who adds
	// arenas, in the goroutine that looks for libraries, may read them without it.
	Mu sync.Mutex

	// writing is held while sites are prepared and written, taken out or put back. Mu may be taken while it is held.
	writing sync.Mutex
	out     map[uint32]bool // functions whose sites are taken out, by their IDs; guarded by writing, as is what follows

	byFunction map[*Arena]*functionPatches // see patchesOf
	partSize   partSize

	taken atomic.Uint64 // see Taken

	lang       language
	rec        *recovery.Memory     // nil when there is none
	journal    recovery.Journal     // in it
	ownsOwner  bool                 // Owner is of this one alone
	privileged bool                 // the process may do more than others of its user
	began      time.Time            // when its memory began to be mapped
	made       []process.Memfd      // all memfds that it was made to open
	semaphores []recovery.Semaphore // of markers, as they are noted
	slots      []recovery.Slot      // of imports, as they are noted
	patched    bool                 // the journal says of sites that may have been written
	running    bool                 // recording is on
	// On is when recording was switched on, in TSC ticks: no call before it was recorded, and none behind it is missing.
	On uint64

	toldSilence  uint64            // the silence that the user was told of last, see ring.Memory.Silence
	restorers    []uint64          // the code that signal handlers return to, see findRestorers
	searched     []process.Mapping // where that was looked for
	hookTries    int               // see hookRetries
	handlerTries int               // see handlerRetries
}

// New is for a process that nothing has been put into yet. Its program isn't one in Go, unless BeGo says so.
func New(p *process.Process) *Target {
	return &Target{Process: p, FD: -1, lang: native()}
}

// Open checks that recording can begin at all.
func Open(pid int) (*Target, error) {
	p, err := process.OpenForCode(pid)
	if err != nil {
		return nil, err
	}
	s := New(p)
	st, err := p.Status()
	if err == nil && st.Seccomp == 1 {
		err = fmt.Errorf("callreel: process %d: %w: it runs in strict seccomp mode, which kills on any system call that setting up would need", pid, refusal.Err)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close lets go of everything on our side.
func (s *Target) Close() {
	for _, im := range s.Images {
		im.Close()
	}
	s.Images = nil
	s.closeMemory()
	if s.ownsOwner {
		s.Owner.Close()
		s.Owner, s.ownsOwner = nil, false
	}
	if s.Process != nil {
		s.Process.Close()
	}
}
