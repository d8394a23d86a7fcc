package object

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// SectionsData returns the contents of several sections at once, as SectionData
// does, inflating compressed ones on workers goroutines, the largest first; 0 workers
// means one for each CPU. The result has an entry for each section in order: nil for
// a section that is nil or damaged. All errors are joined. Once ctx is done no
// further section is begun, and the error is that of ctx.
func (i *Image) SectionsData(ctx context.Context, workers int, sections ...*Section) ([][]byte, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	order := make([]int, 0, len(sections))
	for k, s := range sections {
		if s != nil {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sections[b].FileSize, sections[a].FileSize) })
	contents, errs := make([][]byte, len(sections)), make([]error, len(sections))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(order)) {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(order) || ctx.Err() != nil {
					return
				}
				k := order[n]
				contents[k], errs[k] = i.SectionData(sections[k])
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return contents, i.errorf("inflating sections: %w", err)
	}
	return contents, errors.Join(errs...)
}
