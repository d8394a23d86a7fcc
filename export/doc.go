// Package export writes reels in the formats that other tools read. Exports are
// streamed: their memory does not grow with the trace.
package export
