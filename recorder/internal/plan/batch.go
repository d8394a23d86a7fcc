package plan

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// batchSize is how many items a worker takes at a time.
const batchSize = 64

// batches is how many batches n items make.
func batches(n int) int { return (n + batchSize - 1) / batchSize }

// each runs work on all cores: each worker makes a function of its own, which is called for batch after batch, from from up
// to to.
func each(n int, worker func() func(from, to int)) {
	var next atomic.Int64
	work := func() {
		f := worker()
		for {
			from := int(next.Add(batchSize)) - batchSize
			if from >= n {
				return
			}
			f(from, min(from+batchSize, n))
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), batches(n)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// lists are lists of numbers, one for each item of a batch.
type lists struct {
	all  []uint64
	ends [batchSize]uint32
}

// put sets the list of item i. The batch's items are to come in their order.
func (l *lists) put(i int, list []uint64) {
	l.all = append(l.all, list...)
	l.ends[i%batchSize] = uint32(len(l.all))
}

// of returns the list of item i.
func (l *lists) of(i int) []uint64 {
	from := uint32(0)
	if i %= batchSize; i > 0 {
		from = l.ends[i-1]
	}
	return l.all[from:l.ends[i]]
}
