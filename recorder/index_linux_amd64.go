package recorder

import (
	"context"
	"runtime"
	"time"

	"github.com/callreel/callreel/reel/timeline"
)

// index adds to the reel what makes it open at once in callreel view. The process has been left; half of the processors are
// used, since it goes on working. A signal that ends this leaves a reel without an index.
func (r *recording) index(ctx context.Context) {
	started := time.Now()
	err := timeline.Append(context.WithoutCancel(ctx), r.w, r.opt.Output, timeline.Options{
		Workers: max(1, runtime.GOMAXPROCS(0)/2),
		Progress: func(done, total uint64) {
			if r.opt.Progress == nil || time.Since(started) < time.Second {
				return
			}
			r.noticeMu.Lock()
			defer r.noticeMu.Unlock()
			r.opt.Progress(Progress{Indexed: done, Indexing: total})
		},
	})
	if err != nil {
		r.notice("the reel has no index, callreel view will make one: %v", err)
	}
}
