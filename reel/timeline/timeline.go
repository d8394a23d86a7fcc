package timeline

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/callreel/callreel/reel"
)

// Timeline is an indexed reel. Its methods may be called by several goroutines
// at once.
type Timeline struct {
	opt  Options
	live atomic.Pointer[snapshot]
}

// snapshot is a reel as far as it had come.
type snapshot struct {
	f     *reel.File
	clock clock
	lanes []*lane
	end   uint64
}

type call struct {
	start, end, inside uint64
	fn                 uint32
	flags              reel.CallFlags
}

type lane struct {
	Lane
	stacks [][][]call // by stack and depth
	rows   [][]call
	gaps   []Gap
}

// Open opens the timeline of a reel, by its index or by making one in memory.
// The File must stay open as long as the Timeline is used.
func Open(ctx context.Context, f *reel.File, opt Options) (*Timeline, error) {
	t := &Timeline{opt: opt}
	s, err := build(ctx, f, opt)
	if err != nil {
		return nil, err
	}
	t.live.Store(s)
	return t, nil
}

func build(ctx context.Context, f *reel.File, opt Options) (*snapshot, error) {
	s := &snapshot{f: f, clock: newClock(f)}
	threads := map[uint32]reel.Thread{}
	for _, th := range f.Threads() {
		threads[th.Key] = th
	}
	type key struct {
		thread    uint32
		goroutine uint64
	}
	byKey := map[key]*lane{}
	pairers := map[*lane]*reel.Pairer{}
	ordinals := map[*lane]uint64{}
	laneOf := func(thread uint32, g uint64, now uint64) *lane {
		k := key{thread, g}
		if g != 0 {
			k.thread = 0
		}
		l := byKey[k]
		if l == nil {
			th := threads[thread]
			l = &lane{Lane: Lane{ID: uint32(len(s.lanes)), Thread: thread, Goroutine: g, TID: th.TID, Process: th.Process, Name: th.Name}}
			l.Start = s.clock.toNS(s.clock.rel(now))
			byKey[k] = l
			s.lanes = append(s.lanes, l)
			p := &reel.Pairer{OnCall: l.add(s)}
			p.SetTime(now)
			pairers[l] = p
		}
		return l
	}
	var done uint64
	take := func(l *lane, events []reel.Event, lost bool) bool {
		if lost {
			pairers[l].Lost()
		}
		if s.clock.untimed {
			for i := range events {
				ordinals[l]++
				events[i].Time = ordinals[l]
			}
		}
		pairers[l].Push(events)
		done += uint64(len(events))
		if opt.Progress != nil {
			opt.Progress(done, f.Events())
		}
		return ctx.Err() == nil
	}
	if f.Header().Goroutines {
		for _, th := range f.Threads() {
			laneOf(th.Key, 0, f.FirstTick())
		}
		f.ReadGoroutines(func(g uint64, thread uint32, events []reel.Event, lost bool) bool {
			l := laneOf(thread, g, events[0].Time)
			l.Thread = thread
			if lost {
				for _, p := range pairers {
					p.Lost()
				}
			}
			ok := take(l, events, false)
			if f.Ends(events) {
				pairers[l].Left()
			}
			return ok
		})
	} else {
		for _, th := range f.Threads() {
			l := laneOf(th.Key, 0, f.FirstTick())
			first := true
			f.ReadThread(th.Key, func(events []reel.Event, lost bool) bool {
				if first {
					l.Start, first = s.clock.toNS(s.clock.rel(events[0].Time)), false
				}
				return take(l, events, lost)
			})
		}
	}
	for _, l := range s.lanes {
		p := pairers[l]
		th := threads[l.Thread]
		end := f.LastTick()
		if l.Goroutine == 0 {
			end = f.EndOf(&th)
		}
		if s.clock.untimed {
			end = ordinals[l]
		}
		p.Finish(end)
		l.Calls = p.Calls
		for _, st := range l.stacks {
			l.rows = append(l.rows, st...)
		}
		l.Rows = len(l.rows)
		for _, row := range l.rows {
			slices.SortStableFunc(row, func(a, b call) int { return cmp.Compare(a.start, b.start) })
			for _, c := range row {
				l.End = max(l.End, s.clock.toNS(c.end))
			}
		}
		s.end = max(s.end, l.End)
	}
	s.end = max(s.end, s.clock.toNS(s.clock.rel(f.LastTick())))
	for _, d := range f.Drops() {
		for _, l := range s.lanes {
			if l.Thread == d.Thread && l.Goroutine == 0 {
				at := s.clock.toNS(s.clock.rel(d.Tick))
				l.Dropped += d.Entries + d.Exits
				l.gaps = append(l.gaps, Gap{Start: at, End: at + 1, Events: d.Entries + d.Exits})
			}
		}
	}
	return s, ctx.Err()
}

func (l *lane) add(s *snapshot) func(*reel.Call) {
	return func(c *reel.Call) {
		for len(l.stacks) <= c.Stack {
			l.stacks = append(l.stacks, nil)
		}
		rows := &l.stacks[c.Stack]
		for len(*rows) <= c.Depth {
			*rows = append(*rows, nil)
		}
		(*rows)[c.Depth] = append((*rows)[c.Depth], call{s.clock.rel(c.Start), s.clock.rel(c.End), c.Inside, c.Func, c.Flags})
	}
}

// File is the reel as of the last Refresh.
func (t *Timeline) File() *reel.File { return t.live.Load().f }

// Lanes are the lanes, in order of their appearance. The caller owns the slice.
func (t *Timeline) Lanes() []Lane {
	s := t.live.Load()
	list := make([]Lane, len(s.lanes))
	for i, l := range s.lanes {
		list[i] = l.Lane
	}
	return list
}

// Duration is the length of the recording.
func (t *Timeline) Duration() uint64 { return t.live.Load().end }

// Refresh takes in what was appended to the reel since, and says whether there
// was anything. Answers after it are of the longer reel; see File.
func (t *Timeline) Refresh(ctx context.Context) (changed bool, err error) {
	old := t.live.Load()
	f, err := reel.Open(old.f.Name())
	if err != nil {
		return false, err
	}
	if f.Size() == old.f.Size() {
		return false, f.Close()
	}
	s, err := build(ctx, f, t.opt)
	if err != nil {
		return false, err
	}
	t.live.Store(s)
	return true, nil
}
