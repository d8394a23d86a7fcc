package armed

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// writeOffs says in a dump which functions were off in its window, also those that have no calls in it, and what the budget was.
func (a *Loop) writeOffs(w *catalogued, win window) error {
	if a.Budget != nil {
		if b, ok := a.Budget(); ok {
			if err := w.Budget(b); err != nil {
				return err
			}
		}
	}
	if a.Offs == nil {
		return nil
	}
	list := slices.Clone(a.Offs(win.from, win.to))
	ids := make([]uint32, len(list))
	for i := range list {
		ids[i] = list[i].Function
	}
	ids, err := a.Functions.IDsOf(ids)
	if err == nil {
		err = w.Complete()
	}
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Function = ids[i]
	}
	return w.Off(slices.DeleteFunc(list, func(o reel.Off) bool { return o.Function == 0 }))
}
