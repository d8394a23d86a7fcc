package timeline

import (
	"context"

	"github.com/callreel/callreel/reel"
)

// readBatch is a batch with its events, run by run.
type readBatch struct {
	batch
	list []reel.Event
	runs []run
}

// run is what a goroutine did at one go.
type run struct {
	goroutine uint64
	thread    uint32
	events    int
	lost      bool
}

// eachBatch reads a reel of goroutines batch by batch, and decodes the next
// one meanwhile.
func eachBatch(ctx context.Context, f *reel.File, most int, take func(*readBatch)) error {
	full := make(chan *readBatch, 1)
	free := make(chan *readBatch, 3)
	for range cap(free) {
		free <- new(readBatch)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(full)
		for r := f.Goroutines(nil); !r.Done() && ctx.Err() == nil; {
			w := <-free
			w.read(r, most)
			full <- w
		}
	}()
	defer func() {
		cancel()
		for range full { // until the goroutine is done
		}
	}()
	for w := range full {
		if err := ctx.Err(); err != nil {
			return err
		}
		take(w)
		free <- w
	}
	return ctx.Err()
}

// read reads the next batch.
func (w *readBatch) read(r *reel.GoroutineReader, most int) {
	w.batch = batch{marks: r.Marks()}
	w.list, w.runs = w.list[:0], w.runs[:0]
	r.Read(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		w.list = append(w.list, events...)
		w.runs = append(w.runs, run{id, thread, len(events), lost})
		w.events += len(events)
		return w.events < most
	})
}
