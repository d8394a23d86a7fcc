package probe

// Tier is how a probe sees the exits of a function; see DESIGN.md's words. The empty tier is a function that isn't probed.
type Tier string

// The tiers.
const (
	TierNone     Tier = ""
	TierExitSite Tier = "exit-site"
)

// Reason is why a function is not probed. The values are what `callreel functions` and the JSON show.
type Reason string

// The reasons.
const (
	ReasonNone Reason = ""
	// ReasonEntryShort: fewer than five bytes can be taken over at the entry.
	ReasonEntryShort Reason = "entry-too-short"
	// ReasonExitShort: a return or tail jump has no room for a jump, since a branch target or another function is too near.
	ReasonExitShort Reason = "exit-too-short"
	// ReasonEntryTarget: a branch leads into the bytes that the entry's jump would overwrite.
	ReasonEntryTarget Reason = "branch-into-entry"
	// ReasonCall: a call stands where a jump would have to be, and its return address must stay the true one.
	ReasonCall Reason = "call-at-entry"
	// ReasonPage: the jump would cross a page boundary, and no write of two pages is atomic if callreel dies in it.
	ReasonPage Reason = "page-boundary"
	// ReasonJump: an indirect jump inside the function whose targets aren't known.
	ReasonJump Reason = "unresolved-jump"
	// ReasonLoop: a jump back to the entry from inside the function has no room to be led past the entry event.
	ReasonLoop Reason = "loop-to-entry"
	// ReasonUndecodable: bytes in the function are no instructions of this architecture.
	ReasonUndecodable Reason = "undecodable"
	// ReasonShared: part of the body belongs to several functions, so an exit there can't say whose it is.
	ReasonShared Reason = "shared-body"
	// ReasonOverlap: the range overlaps another function's.
	ReasonOverlap Reason = "overlaps"
	// ReasonOrphan: a part (cold code) whose function isn't known.
	ReasonOrphan Reason = "orphan-part"
	// ReasonInstruction: an instruction that can't be moved (system call, far return, transaction) at a site.
	ReasonInstruction Reason = "unmovable-instruction"
	// ReasonSignalReturn: code that unwinders and kernels know by its bytes.
	ReasonSignalReturn Reason = "signal-return"
	// ReasonCancellation: an exception may start at any of its instructions (pthread_cancel), and code in the arena has
	// no unwind information.
	ReasonCancellation Reason = "cancellation"
	// ReasonLinkage: linkage code (PLT, crt), not a function of the program.
	ReasonLinkage Reason = "linkage"
	// ReasonLoader: the dynamic loader, which runs while thread-local storage is being set up.
	ReasonLoader Reason = "dynamic-loader"
	// ReasonText: the code in memory isn't the file's: somebody else has patched it.
	ReasonText Reason = "text-differs"
	// ReasonUnmapped: the function's bytes aren't in an executable segment.
	ReasonUnmapped Reason = "not-executable"
	// ReasonReach: no free address range lies within 2 GiB of the image.
	ReasonReach Reason = "no-arena-in-reach"
	// ReasonAssembly: a Go program's function that the Go compiler hasn't made: it may use registers as it likes.
	ReasonAssembly Reason = "assembly"
	// ReasonPreempted: a goroutine is to go on inside a site, where it was preempted.
	ReasonPreempted Reason = "preempted-inside"
	// ReasonGo: the Go runtime's stacks and recovery need more care than this tier gives.
	ReasonGo Reason = "go-runtime"
)
