package recorder

import "time"

// Detached is what Detach found and did.
type Detached struct {
	Sites        int // restored
	TextVerified bool
	Stopped      time.Duration
	Left         string // why arenas stay mapped, empty if they don't
	Doubted      int    // sites that were noted, but not restored: the file of their image has other bytes there
	Children     int    // forked processes that were restored, too
	Odd          int    // semaphores of markers that were left as they were, since somebody else had set them to less than was added
	// Dump is the file with what the rings of an armed recorder held, NoDump why that could not be made; both are empty if it wasn't armed.
	Dump, NoDump string
}

// A Presence is what a recorder has in a process.
type Presence struct {
	Recorder int  // its PID, as its own PID namespace counts
	Alive    bool // it is at work; else it has died, and Detach removes what it has left
}
