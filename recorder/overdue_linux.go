package recorder

import (
	"context"

	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// watchOverdue has threads looked at that do something for long which a budget leaves out, and returns what does so; nil where nothing does. In
// Go programs it isn't known on which thread a goroutine's call goes on.
func (r *recording) watchOverdue(ctx context.Context) *overdue.Watch {
	if r.opt.To != nil || r.isGo() {
		return nil
	}
	w := r.newWatch(ctx)
	switch s := r.reader.(type) {
	case *stream:
		s.TicksPerSecond, s.Overdue = r.set.TicksPerSecond, w
	case *moments:
		s.Overdue = w
	}
	return w
}

func (r *recording) newWatch(ctx context.Context) *overdue.Watch {
	var functions *overdue.Functions
	known := -1
	return overdue.New(ctx, overdue.Config{Process: r.s.Process, IsOff: r.switches.IsOff, Undisturbed: r.s.Undisturbed, Ticks: ring.Ticks, Functions: func() *overdue.Functions {
		r.s.Mu.Lock()
		defer r.s.Mu.Unlock()
		if n := len(r.s.Arenas); n == known {
			return functions
		}
		known = len(r.s.Arenas)
		var list []overdue.Function
		for _, a := range r.s.Arenas {
			for i := range a.Fns {
				if fn := &a.Fns[i]; fn.ID != 0 && !fn.IsMark() && fn.Import == nil {
					list = append(list, overdue.Function{Addr: fn.Addr + fn.Slide, Size: fn.Size, ID: fn.ID})
				}
			}
		}
		functions = overdue.NewFunctions(list)
		return functions
	}})
}
