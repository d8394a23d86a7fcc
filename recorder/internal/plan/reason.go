package plan

// Tier is how a probe sees the exits of a function, see docs/design/patching.md. The zero tier is a function that isn't probed.
type Tier uint8

// The tiers.
const (
	TierNone Tier = iota
	TierExitSite
)

var tierNames = [...]string{TierNone: "", TierExitSite: "exit-site"}

// String returns what `callreel functions` and the JSON show: nothing for TierNone.
func (t Tier) String() string { return tierNames[t] }

// Reason is why a function is not probed.
type Reason uint8

// The reasons.
const (
	ReasonNone Reason = iota
	// ReasonEntryShort: fewer than five bytes can be taken over at the entry.
	ReasonEntryShort
	// ReasonExitShort: a return or tail jump has no space for a jump, since a branch target or another function is too near.
	ReasonExitShort
	// ReasonEntryTarget: a branch leads into the bytes that the entry's jump would overwrite.
	ReasonEntryTarget
	// ReasonCall: a call is where a jump would have to be, and its return address must stay the true one.
	ReasonCall
	// ReasonPage: the jump would cross a page boundary, and no write of two pages is atomic if callreel dies in it.
	ReasonPage
	// ReasonJump: an indirect jump inside the function whose targets aren't known.
	ReasonJump
	// ReasonLoop: a jump back to the entry from inside the function has no space to be led past the entry event.
	ReasonLoop
	// ReasonUndecodable: bytes in the function are no instructions of this architecture.
	ReasonUndecodable
	// ReasonShared: part of the body belongs to several functions, so an exit there can't say whose it is.
	ReasonShared
	// ReasonOverlap: the range overlaps another function's.
	ReasonOverlap
	// ReasonOrphan: a part (cold code) whose function isn't known.
	ReasonOrphan
	// ReasonInstruction: an instruction that can't be moved (system call, far return, transaction) at a site.
	ReasonInstruction
	// ReasonSignalReturn: code that unwinders and kernels know by its bytes.
	ReasonSignalReturn
	// ReasonCancellation: an unwinder may start at any of its instructions (pthread_cancel), and not every unwinder finds the
	// unwind information of an arena, see docs/design/unwinding.md.
	ReasonCancellation
	// ReasonLinkage: linkage code (PLT, crt), not a function of the program.
	ReasonLinkage
	// ReasonLoader: the dynamic loader, which runs while thread-local storage is being set up.
	ReasonLoader
	// ReasonText: the code in memory isn't the file's: somebody else has patched it.
	ReasonText
	// ReasonUnmapped: the function's bytes aren't in an executable segment.
	ReasonUnmapped
	// ReasonReach: no free address range lies within 2 GiB of the image.
	ReasonReach
	// ReasonAssembly: a Go program's function that the Go compiler hasn't made: it may use registers as it likes.
	ReasonAssembly
	// ReasonPreempted: a goroutine is to go on inside a site, where it was preempted.
	ReasonPreempted
	// ReasonGo: a Go program that isn't as expected: the Go runtime's stacks and recovery need care.
	ReasonGo
	// ReasonGoVersion: a Go program made by a version whose runtime isn't known.
	ReasonGoVersion
	// ReasonLarge: a function of more than maxFunction bytes: what is known of each of its instructions would take too much memory.
	ReasonLarge
	// ReasonUnasked: nobody wants to know of functions.
	ReasonUnasked
	// ReasonOutside: a marker that is in no function that is known.
	ReasonOutside
	// ReasonMarkShort: fewer than five bytes can be taken over around a marker, since branch targets or others' sites are too near.
	ReasonMarkShort
	// ReasonMarkNear: another marker's site has what this one would need.
	ReasonMarkNear
	// ReasonMarkedTwice: another marker is at the same instruction.
	ReasonMarkedTwice
	// ReasonMarkLost: the site of a function that is recorded, too, has what the marker would need.
	ReasonMarkLost
	// ReasonMarker: a function of package mark, where markers are asked for.
	ReasonMarker
	// ReasonCgo: a Go program with C code in it, whose threads and stacks are not the Go runtime's alone.
	ReasonCgo
)

var reasonNames = [...]string{
	ReasonNone:         "",
	ReasonEntryShort:   "entry-too-short",
	ReasonExitShort:    "exit-too-short",
	ReasonEntryTarget:  "branch-into-entry",
	ReasonCall:         "call-at-entry",
	ReasonPage:         "page-boundary",
	ReasonJump:         "unresolved-jump",
	ReasonLoop:         "loop-to-entry",
	ReasonUndecodable:  "undecodable",
	ReasonShared:       "shared-body",
	ReasonOverlap:      "overlaps",
	ReasonOrphan:       "orphan-part",
	ReasonInstruction:  "unmovable-instruction",
	ReasonSignalReturn: "signal-return",
	ReasonCancellation: "cancellation",
	ReasonLinkage:      "linkage",
	ReasonLoader:       "dynamic-loader",
	ReasonText:         "text-differs",
	ReasonUnmapped:     "not-executable",
	ReasonReach:        "no-arena-in-reach",
	ReasonAssembly:     "assembly",
	ReasonPreempted:    "preempted-inside",
	ReasonGo:           "go-runtime",
	ReasonGoVersion:    "go-version",
	ReasonLarge:        "too-large",
	ReasonCgo:          "cgo",
	ReasonMarker:       "marker",
	ReasonUnasked:      "not-asked-for",
	ReasonOutside:      "outside-functions",
	ReasonMarkShort:    "marker-too-short",
	ReasonMarkNear:     "marker-too-near",
	ReasonMarkedTwice:  "marked-twice",
	ReasonMarkLost:     "function-in-the-way",
}

// String returns what `callreel functions` and the JSON show: nothing for ReasonNone.
func (r Reason) String() string { return reasonNames[r] }
