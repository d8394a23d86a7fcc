package ring

// Ticks reads the time-stamp counter, the clock that stubs read.
func Ticks() uint64
