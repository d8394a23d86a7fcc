package recovery

import "sync/atomic"

// A Semaphore is a 16-bit number of the target's that is one higher while its markers are recorded. What has been done to it is noted
// before it is done, and again behind it, so that whoever finds the record can tell whether it was done.
type Semaphore struct {
	Addr uint64
	// Dev and Inode are of the file that is mapped there, as process.Mapping has them.
	Dev, Inode uint64
	// Site is the address of a site in the same file's text, which is in place while the number is higher.
	Site uint64

	state *uint64 // in the recorder's mapping of the record; nil for a record that was read
	noted State   // of a record that was read
}

// State is what has been done to a semaphore: one of the words below, and, while it is being changed, what it was before.
type State uint64

// What has been done to it.
const (
	Untouched State = iota
	GoingUp
	Up
	GoingDown

	stateBefore = 32 // where the number before is
)

// Is is the word, Before what the number was before the change that the word is about.
func (s State) Is() State      { return s & (1<<stateBefore - 1) }
func (s State) Before() uint16 { return uint16(s >> stateBefore) }

// Changing is the state of one that is about to be changed.
func (s State) Changing(before uint16) State { return s | State(before)<<stateBefore }

// State returns what has been done.
func (x *Semaphore) State() State {
	if x.state == nil {
		return x.noted
	}
	return State(atomic.LoadUint64(x.state))
}

// Note says what is, or is about to be, done. Without a recorder's mapping it is kept here alone.
func (x *Semaphore) Note(s State) {
	if x.state == nil {
		x.noted = s
		return
	}
	atomic.StoreUint64(x.state, uint64(s))
}

// Added says whether the number, which is now, has ours in it.
func (x *Semaphore) Added(now uint16) bool {
	s := x.State()
	switch s.Is() {
	case Up:
		return now > 0
	case GoingUp:
		return now > s.Before()
	case GoingDown:
		return now >= s.Before() && now > 0
	}
	return false
}
