package timeline

import (
	"context"

	"github.com/callreel/callreel/reel"
)

// readWindow is a window with its events, run by run.
type readWindow struct {
	window
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

// eachWindow reads a reel of goroutines window by window, and decodes the next
// one meanwhile.
func eachWindow(ctx context.Context, f *reel.File, most int, take func(*readWindow)) error {
	full := make(chan *readWindow, 1)
	free := make(chan *readWindow, 3)
	for range cap(free) {
		free <- new(readWindow)
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

// read reads the next window.
func (w *readWindow) read(r *reel.GoroutineReader, most int) {
	w.window = window{marks: r.Marks()}
	w.list, w.runs = w.list[:0], w.runs[:0]
	r.Read(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		w.list = append(w.list, events...)
		w.runs = append(w.runs, run{id, thread, len(events), lost})
		w.events += len(events)
		return w.events < most
	})
}
