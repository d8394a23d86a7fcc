// Package export writes reels, and the stacks of a sampler, in the formats that other
// tools read. Exports of reels are streamed: their memory does not grow with the trace,
// only with threads, goroutines that have not ended, and functions called.
package export
