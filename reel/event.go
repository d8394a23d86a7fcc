package reel

// MaxID is the largest function ID: IDs run from 1 to MaxID, so that an ID
// and the exit bit fit into one 32-bit word.
const MaxID = 1 << 30

// EventSize is the size of an [Event] in memory, in bytes. Rings hold events
// in this very layout.
const EventSize = 16

// Event is one entry into, or exit from, a function. Stubs write it as three
// stores of 8, 4 and 4 bytes, so the order and size of the fields are fixed.
type Event struct {
	// Time is the time-stamp counter, in ticks; 0 where no clock was read.
	Time uint64
	// SP is the low 32 bits of the stack pointer before the function's first
	// instruction, which is its value again before the last one (the address of
	// the return address). Entry and exit of one call have the same SP.
	SP uint32
	// Word is the function's ID shifted left by one; the lowest bit is 1 for
	// an exit.
	Word uint32
}

// Entry returns the event of entering the function id.
func Entry(time uint64, sp, id uint32) Event { return Event{Time: time, SP: sp, Word: id << 1} }

// Exit returns the event of leaving the function id.
func Exit(time uint64, sp, id uint32) Event { return Event{Time: time, SP: sp, Word: id<<1 | 1} }

// ID is the function's ID: its place in the reel's function table, from 1.
func (e Event) ID() uint32 { return e.Word >> 1 }

// IsExit reports whether the event is an exit; otherwise it is an entry.
func (e Event) IsExit() bool { return e.Word&1 != 0 }

// A thread that runs goroutines says so by an event between the others: the events that follow are those of the goroutine named, up to
// the next such event; what comes before the first is of the thread's own stack, which is called goroutine 0. Goroutines go from thread
// to thread, so only their events of all threads together, in the order of the times of these events, are calls: see
// [File.ReadGoroutines].
//
// Such an event has the lower 32 bits of the goroutine's ID for SP and SwitchWord, with the upper bits of the ID from bit 1 on, for
// Word. No function has so high an ID.
const (
	SwitchWord = 0xC0000001
	switchMask = 0xC0000001
)

// Goroutine returns the ID of the goroutine whose events follow, if the event says so.
func (e Event) Goroutine() (id uint64, ok bool) {
	return uint64(e.Word&^switchMask)>>1<<32 | uint64(e.SP), e.Word&switchMask == SwitchWord
}

// Switch returns the event that names the goroutine whose events follow.
func Switch(time, goroutine uint64) Event {
	return Event{Time: time, SP: uint32(goroutine), Word: SwitchWord | uint32(goroutine>>32)<<1&^uint32(switchMask)}
}
