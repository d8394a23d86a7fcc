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
	return i.sectionsData(ctx, workers, i.SectionData, sections)
}

// MapSections is SectionsData for what is read once, from one end to the other, as
// debug information is: a section that is large and not compressed is a part of a
// mapping of the file, if nobody but root and us may write to the file. That takes no
// memory that the system couldn't have back, but an access behind the end of a
// truncated file is a fault. So all reading of it belongs inside of CatchFaults.
func (i *Image) MapSections(ctx context.Context, workers int, sections ...*Section) ([][]byte, error) {
	return i.sectionsData(ctx, workers, i.mapSection, sections)
}

// leastMapped is the size from which on a section is mapped.
const leastMapped = 1 << 20

func (i *Image) mapSection(s *Section) ([]byte, error) {
	if i.packing(s) != nil || s.Alloc() || s.FileSize < leastMapped || !i.contents.onlyOurs {
		return i.SectionData(s)
	}
	err := i.inside(s.Off, s.FileSize)
	var b []byte
	if a := i.Allowance(); err == nil && s.FileSize > uint64(a.Total()) {
		// It takes no memory, but time: of what is no hole it could not be as much.
		err = &MemoryError{What: "reading it", Want: int64(min(s.FileSize, 1<<62)), Used: a.Used(), Limit: a.Total()}
	}
	if err == nil {
		b, err = i.contents.mapped(i.base+s.Off, s.FileSize)
	}
	if err != nil {
		return nil, i.sectionErrorf(s, "%#x bytes %w", s.FileSize, err)
	}
	return b, nil
}

func (i *Image) sectionsData(ctx context.Context, workers int, data func(*Section) ([]byte, error), sections []*Section) ([][]byte, error) {
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
				contents[k], errs[k] = data(sections[k])
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return contents, i.errorf("inflating sections: %w", err)
	}
	return contents, errors.Join(errs...)
}
