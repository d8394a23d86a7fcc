package reel

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
)

// SummaryOptions say what [Summarize] lists.
type SummaryOptions struct {
	// Match chooses the functions that are listed, by their name as recorded or
	// as Name gives it; nil lists all. It does not change the numbers.
	Match func(name string) bool
	// Name turns a recorded name into the one shown, for example demangled; nil
	// shows it as recorded. It may be called by several goroutines at once.
	Name func(name string) string
	// Order puts the functions in another order than by the Total of calls that ended: by what it returns, highest first. It
	// must not depend on names.
	Order func(*FunctionSummary) uint64
	// Limit is how many functions are listed, the first in that order; 0 lists all. Where Match is nil no others are named.
	Limit int
	// Workers is how many goroutines read; 0 means one for each processor.
	Workers int
}

// workers is how many goroutines there are to be.
func (o *SummaryOptions) workers() int {
	if o.Workers <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return o.Workers
}

// Summary is what a recording sums up to. Times are in nanoseconds.
type Summary struct {
	// Functions lists those that were called, by the Total of calls that ended, longest first, if SummaryOptions don't say
	// something else. Unlisted is how many others Match has chosen, beyond the Limit.
	Functions []FunctionSummary
	Unlisted  int
	// Threads lists all threads, in order of appearance.
	Threads []ThreadSummary
	// Goroutines lists the goroutines of a Go program, and what ran on its threads' own stacks, by Calls,
	// most first.
	Goroutines []GoroutineSummary
	// HasStates says that states are known of a thread at least: Functions and Threads are split by them.
	HasStates bool
	// Calls counts entries, Events what could be read.
	Calls, Events uint64
	// Every says that one in so many calls of each function was recorded, of the Made that there were; 0 where all were to be.
	Every uint32
	Made  uint64
	// DroppedEntries and DroppedExits count what the rings had no room for.
	DroppedEntries, DroppedExits uint64
	// UnmatchedExits counts exits of calls whose entry was not recorded: those
	// open when recording began, and dropped ones.
	UnmatchedExits uint64
	// TooDeep counts entries that were ignored since too many calls were open.
	TooDeep uint64
	// Duration is from the first to the last tick of the recording.
	Duration uint64
	// Damage is what could not be read.
	Damage []Damage
}

// FunctionSummary sums up the calls of one function. Times are in nanoseconds.
type FunctionSummary struct {
	ID     uint32
	Name   string
	Module string // base name of its image's file
	// File and Line are where it begins in its source, "" and 0 if that isn't known; NamedFrom is who knew its name.
	File      string
	Line      uint32
	NamedFrom NameSource
	// Calls counts entries.
	Calls uint64
	// Made is how many calls there were, where one in so many was recorded and that is known; else 0.
	Made uint64
	// Total is the time in the function, calls that it made included. Where it
	// calls itself, directly or through others, only the outermost call counts.
	Total uint64
	// Self is Total without the calls that it made, of all its calls.
	Self uint64
	// P50 and P99 are percentiles of the durations of complete calls (nearest
	// rank), right to 0.8 %. Complete counts those: if there were none, there are no percentiles.
	P50, P99, Complete uint64
	// Max is the longest call, unfinished ones included.
	Max uint64
	// Unfinished counts calls that were open when their thread or the recording ended; the time
	// until then is in Total, Self and Max.
	Unfinished uint64
	// UnfinishedTotal and UnfinishedSelf are the parts of Total and Self that unfinished calls have: how long they were seen, which
	// isn't what they cost. EndedMax is the longest of the other calls.
	UnfinishedTotal, UnfinishedSelf, EndedMax uint64
	// TotalStates and SelfStates split Total and Self by what the threads did meanwhile, in nanoseconds, if the Summary HasStates; what is
	// missing to the whole isn't known. UnfinishedTotalStates and UnfinishedSelfStates are the parts that unfinished calls have.
	TotalStates, SelfStates, UnfinishedTotalStates, UnfinishedSelfStates StateTimes
	// Implicit counts calls whose end was concluded from the stack pointer:
	// unwound by an exception or longjmp, or across lost events. Their time counts
	// in all but the percentiles.
	Implicit uint64
}

// EndedTotal is Total without that of unfinished calls.
func (f *FunctionSummary) EndedTotal() uint64 { return f.Total - min(f.UnfinishedTotal, f.Total) }

// EndedSelf is Self without that of unfinished calls.
func (f *FunctionSummary) EndedSelf() uint64 { return f.Self - min(f.UnfinishedSelf, f.Self) }

// EndedSelfStates is SelfStates without that of unfinished calls.
func (f *FunctionSummary) EndedSelfStates() StateTimes {
	return f.SelfStates.Minus(f.UnfinishedSelfStates)
}

// Ended counts the calls that ended.
func (f *FunctionSummary) Ended() uint64 { return f.Calls - min(f.Unfinished, f.Calls) }

// ThreadSummary sums up one thread.
type ThreadSummary struct {
	Thread
	// Calls counts entries.
	Calls uint64
	// Dropped counts events that its ring had no room for.
	Dropped uint64
	// UnmatchedExits counts exits without an entry.
	UnmatchedExits uint64
	// States is what it did, in nanoseconds, within calls and outside of them, if HasStates; Unknown is how long it isn't known what it did,
	// since the first that is known of it.
	States    StateTimes
	Unknown   uint64
	HasStates bool
	// Sums are the kernel's own, if HasSums.
	Sums    SchedSums
	HasSums bool
	// MinorFaults and MajorFaults count page faults, if the reel's Scheduling has Faults.
	MinorFaults, MajorFaults uint64
}

// Summarize reads all events and sums them up. Damage does not make it fail: it
// is in the Summary.
func Summarize(f *File, opt SummaryOptions) *Summary {
	workers := opt.workers()
	s := &Summary{Threads: make([]ThreadSummary, len(f.threads))}
	var tallies []*tally
	if f.header.Goroutines {
		tallies = []*tally{tallyGoroutines(f, s)}
	} else {
		tallies = tallyThreads(f, s, workers)
	}
	for _, d := range f.drops {
		s.DroppedEntries += d.Entries
		s.DroppedExits += d.Exits
		s.Threads[f.byKey[d.Thread]].Dropped += d.Entries + d.Exits
	}
	for i := range s.Threads {
		s.Calls += s.Threads[i].Calls
		s.UnmatchedExits += s.Threads[i].UnmatchedExits
	}
	total := tallies[0]
	for _, t := range tallies {
		s.Events += t.events
		s.TooDeep += t.tooDeep
		if t != total {
			total.merge(t)
		}
	}
	s.HasStates = total.hasStates
	s.Every = f.every
	for _, n := range f.made {
		s.Made += n
	}
	s.Functions, s.Unlisted = listFunctions(f, total, &opt)
	first, last := f.FirstTick(), f.LastTick()
	s.Duration = f.ticks.Nanoseconds(last - min(first, last))
	s.Damage = f.Damage()
	return s
}

// tallyThreads reads the threads on several goroutines, the busiest first, and
// fills in their summaries. There is at least one tally.
func tallyThreads(f *File, s *Summary, workers int) []*tally {
	order := make([]int, len(f.threads))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.threads[b].events, f.threads[a].events) })
	// A lone thread leaves a processor idle, which can decode ahead.
	ahead := workers > 1 && len(order) < workers
	next := make(chan int)
	tallies := make([]*tally, max(1, min(workers, len(order))))
	var wg sync.WaitGroup
	for i := range tallies {
		t := newTally(f)
		tallies[i] = t
		wg.Go(func() {
			for thread := range next {
				s.Threads[thread] = t.readThread(thread, ahead)
			}
		})
	}
	for _, thread := range order {
		next <- thread
	}
	close(next)
	wg.Wait()
	return tallies
}
