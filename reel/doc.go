// Package reel is the recording file: it appends the events of threads,
// recovers what a damaged file still holds, pairs entries and exits into
// calls and sums them up.
//
// # The file
//
// A reel (.reel) is a sequence of chunks and nothing else. Every chunk starts
// with a 48-byte frame that carries its kind, its thread, the length and the
// CRC-32C of its payload and a CRC-32C of itself, so a reader can step over a
// damaged payload and find its way again after a damaged frame. The first
// chunk is the [Header]; images, functions, threads and clock pairs follow as
// they become known, between the chunks of events. A reel that was closed ends
// with summaries for the timeline, if its recorder made them (see package
// timeline), and an index of all its chunks; for one that was not, that is rebuilt
// by walking the frames. Names that became known later (see [File.Appendix]) stand behind
// that, with another index. A reel that is a [Dump], of the last seconds before something happened,
// says so by a chunk of its own.
//
// Integers in frames are little-endian. Payloads of descriptive chunks are
// made of unsigned varints and length-prefixed byte strings (no encoding is
// promised for names: they are bytes of the traced program).
//
// # Events
//
// A chunk of events belongs to one thread and decodes by itself. Both sides
// run the same predictor: a table keyed by what happened last proposes the
// next event, the stack of open calls proposes the exit of the innermost one.
// What the proposals get right costs one or two bytes for the time alone; what
// they get wrong is spelled out. Decoding yields the very events appended, bit
// for bit, whatever they are. See encode.go for the layout.
package reel
