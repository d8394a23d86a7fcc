package reel

// readAheadBatches is how many batches are decoded before they are asked for.
const readAheadBatches = 3

// readAhead is ReadThread with the decoding done on another goroutine.
func (f *File) readAhead(thread uint32, yield func(events []Event, lost bool) bool) {
	type batch struct {
		events []Event
		lost   bool
	}
	full := make(chan batch, readAheadBatches)
	free := make(chan []Event, readAheadBatches)
	for range readAheadBatches {
		free <- nil
	}
	stop := make(chan struct{})
	go func() {
		defer close(full)
		f.decodeThread(thread, func() ([]Event, bool) {
			select {
			case buf := <-free:
				return buf, true
			case <-stop:
				return nil, false
			}
		}, func(events []Event, lost bool) bool {
			full <- batch{events, lost}
			return true
		})
	}()
	defer func() {
		close(stop)
		for range full { // until the goroutine is done
		}
	}()
	for b := range full {
		if len(b.events) > 0 && !yield(b.events, b.lost) {
			return
		}
		free <- b.events
	}
}
