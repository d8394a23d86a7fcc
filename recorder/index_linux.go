package recorder

import (
	"context"
	"runtime"
	"time"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// index adds to the reel what makes it open at once in callreel view. The process has been left; half of the processors are
// used, since it goes on working. A signal that ends this leaves a reel without an index.
func (r *recording) index(ctx context.Context, w *reel.Writer) {
	started := time.Now()
	ctx = context.WithoutCancel(ctx)
	if r.opt.Index != nil {
		during, done := r.opt.Index(ctx)
		defer done()
		ctx = during
	}
	err := timeline.Append(ctx, w, r.opt.Output, timeline.Options{
		Workers: max(1, runtime.GOMAXPROCS(0)/2),
		Progress: func(done, total uint64) {
			if time.Since(started) >= time.Second {
				r.tell(Progress{Indexed: done, Indexing: total})
			}
		},
	})
	switch {
	case err != nil && ctx.Err() != nil:
		r.notice("the reel has no index, as that was not waited for; callreel view will make one")
	case err != nil:
		r.notice("the reel has no index, callreel view will make one: %v", err)
	}
}
