// Package timeline answers what a screen asks of a reel: the calls in a range
// of time at a resolution, the call at a point, the next call of a function.
//
// A lane is a thread, or in a Go program a goroutine or what ran on a thread's
// own stack; a row is a depth in it. Further stacks of a thread (signal
// handlers', coroutines') have their rows below those of the first.
//
// No time in a lane is before another: where clocks of processors differ by a
// few ticks, events are taken to be as late as those before them.
//
// Times are nanoseconds from the recording's first tick. In a reel without a
// clock (reel.ClockNone) they are the number of the event in its lane.
package timeline
