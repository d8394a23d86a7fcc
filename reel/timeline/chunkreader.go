package timeline

import (
	"context"

	"github.com/callreel/callreel/reel"
)

// blockEvents is how many events are decoded at a time: they stay in a
// processor's nearest cache until they are paired.
const blockEvents = 1 << 11

// chunkReader decodes chunks, perhaps ahead.
type chunkReader struct {
	f      *reel.File
	chunks []reel.Chunk
	buf    []reel.Event // to decode into, of blockEvents; may be nil
}

// block is some events of a chunk.
type block struct {
	events      []reel.Event
	first, last bool // of the chunk
	gone        bool // chunks before it are missing
	lost        int  // events behind it that could not be read
}

// blocks calls take with each block of a chunk, of which there is at least one.
// take returns what the next is to be decoded into.
func (r *chunkReader) blocks(c *reel.Chunk, gone bool, buf []reel.Event, take func(b block) []reel.Event) {
	have := 0
	_ = r.f.DecodeBlocks(*c, buf, func(events []reel.Event) []reel.Event { // what is lost is counted
		first := have == 0
		have += len(events)
		return take(block{events: events, first: first, gone: first && gone, last: have == c.Events})
	})
	if have < c.Events || have == 0 {
		take(block{first: have == 0, gone: have == 0 && gone, last: true, lost: c.Events - have})
	}
}

// readAhead is how many blocks are decoded before they are asked for.
const readAhead = 16

// each calls take with the blocks of each chunk, in order. next is the number of
// the first.
func (r *chunkReader) each(ctx context.Context, next uint32, ahead bool, take func(i int, b block)) error {
	if !ahead {
		buf := r.buf
		if buf == nil {
			buf = make([]reel.Event, blockEvents)
		}
		for i := range r.chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			c := &r.chunks[i]
			r.blocks(c, c.Seq != next, buf, func(b block) []reel.Event {
				take(i, b)
				return buf
			})
			next = c.Seq + 1
		}
		return nil
	}
	type numbered struct {
		block
		chunk int
	}
	full := make(chan numbered, readAhead)
	free := make(chan []reel.Event, readAhead+2)
	for range cap(free) {
		free <- make([]reel.Event, 4*blockEvents)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(full)
		buf := <-free
		for i := range r.chunks {
			if ctx.Err() != nil {
				return
			}
			c := &r.chunks[i]
			r.blocks(c, c.Seq != next, buf, func(b block) []reel.Event {
				full <- numbered{b, i}
				if b.events != nil {
					buf = <-free
				}
				return buf
			})
			next = c.Seq + 1
		}
	}()
	give := func(b numbered) {
		if b.events != nil {
			free <- b.events[:cap(b.events)]
		}
	}
	defer func() {
		cancel()
		for b := range full { // until the goroutine is done
			give(b)
		}
	}()
	for b := range full {
		take(b.chunk, b.block)
		give(b)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
