package export

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// schedule makes up what a scheduler does with threads on some processors, in steps of 16 ticks, from tick 1008 on. Of some words are lost.
func schedule(rng *rand.Rand, threads, cpus, steps int, tid func(int) int32) [][]reel.SchedEvent {
	out := make([][]reel.SchedEvent, threads)
	on, ready, blocked := make([]int, cpus), []int{}, []int{}
	for i := range on {
		on[i] = -1
	}
	for i := range threads {
		blocked = append(blocked, i)
	}
	take := func(list *[]int) int {
		i := rng.IntN(len(*list))
		x := (*list)[i]
		*list = slices.Delete(*list, i, i+1)
		return x
	}
	now := uint64(1008)
	said := make([]uint64, threads) // a thread's words are apart in time
	add := func(i int, e reel.SchedEvent) {
		e.Time = now
		out[i], said[i] = append(out[i], e), now
	}
	for range steps {
		now += 16 * uint64(rng.IntN(3))
		cpu := rng.IntN(cpus)
		if i := on[cpu]; i >= 0 && said[i] < now && rng.IntN(2) == 0 {
			on[cpu] = -1
			switch rng.IntN(5) {
			case 0:
				add(i, reel.SchedEvent{Kind: reel.SchedPreempted})
				ready = append(ready, i)
			case 1:
				add(i, reel.SchedEvent{Kind: reel.SchedUninterruptible})
				blocked = append(blocked, i)
			default:
				add(i, reel.SchedEvent{Kind: reel.SchedBlocked})
				blocked = append(blocked, i)
			}
		}
		if on[cpu] < 0 && len(ready) > 0 {
			if i := take(&ready); said[i] < now {
				on[cpu] = i
				add(i, reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(cpu)})
			} else {
				ready = append(ready, i)
			}
		}
		if len(blocked) > 0 && rng.IntN(2) == 0 {
			if i := take(&blocked); said[i] < now {
				waker := [...]int32{0, reel.WakerKernel, 4_000_000, tid(rng.IntN(threads))}[rng.IntN(4)]
				if rng.IntN(50) == 0 {
					add(i, reel.SchedEvent{Kind: reel.SchedLost})
					now += 16
				}
				add(i, reel.SchedEvent{Kind: reel.SchedWoken, Waker: waker})
				ready = append(ready, i)
			} else {
				blocked = append(blocked, i)
			}
		}
		if i := on[cpu]; i >= 0 && rng.IntN(20) == 0 {
			e := reel.SchedEvent{Kind: reel.SchedMinorFault, Time: now, Address: 0x7f00_0000_0000 + rng.Uint64N(1<<30)}
			out[i] = append(out[i], e)
		}
	}
	return out
}

// scheduled is a reel of threads that call and are scheduled. The first one makes no calls, and the
// second one has several stacks.
func scheduled(t testing.TB, threads, steps int, h reel.Header) *reel.File {
	t.Helper()
	rng := rand.New(rand.NewPCG(18, uint64(threads)))
	tid := func(i int) int32 { return int32(100 + i) }
	words := schedule(rng, threads, 3, steps, tid)
	last := uint64(0)
	for _, list := range words {
		for _, e := range list {
			last = max(last, e.Time)
		}
	}
	return recordAs(t, h, manyNames(), func(w *reel.Writer) {
		for i, list := range words {
			thread := reel.Thread{TID: int(tid(i)), Name: fmt.Sprintf("thread-%d", i)}
			var events []reel.Event
			for k, e := range manyCalls(int(last) / 150) {
				e.Time = 1001 + uint64(k)*150
				events = append(events, e)
			}
			switch i {
			case 0:
				events = nil
			case 1:
				events = madereel.Coroutines(rng, int(last)/60, 3, 64<<10, 1001)
			}
			tw := appendTo(t, w, thread, events...)
			if err := tw.Sched(list); err != nil {
				t.Fatal(err)
			}
		}
		w.SchedKnown(last + 160)
	})
}

// stateRow is a row of trace_processor's table thread_state.
type stateRow struct {
	tid   int
	from  int64
	dur   int64 // -1 for one that goes on at the end
	state string
	cpu   int // -1 for none
	waker int // -1 for none
}

// wantStates is what the table should have, without what isn't known.
func wantStates(f *reel.File, base int64) []stateRow {
	var out []stateRow
	for _, t := range f.Threads() {
		r := f.States(t.Key)
		var was reel.StateInterval
		for s, ok := r.Next(); ok; {
			next, more := r.Next()
			from, to := f.Clock().UnixNS(s.From)-base, f.Clock().UnixNS(s.To)-base
			row := stateRow{t.TID, from, to - from, "", -1, -1}
			if !more && t.EndTick == 0 {
				row.dur = -1
			}
			switch s.State {
			case reel.StateRunning:
				row.state, row.cpu = "Running", int(s.CPU)
			case reel.StateBlocked:
				row.state = "S"
				if s.Uninterruptible {
					row.state = "D"
				}
			case reel.StateReady:
				row.state = "R+"
				if !s.Preempted {
					row.state, row.waker = "R", max(0, int(was.Waker))
				}
			}
			if row.state != "" {
				out = append(out, row)
			}
			was, s, ok = s, next, more
		}
	}
	return out
}

// stateQueries ask for the states, with what isn't known left out, for how long that is, and for the threads and what it thinks of the trace.
var stateQueries = []string{
	`select tid, iif(ts < 1000000000000000000, ts, ts - 1700000000000000000), dur, state, ifnull(cpu, -1),
		ifnull((select tid from thread w where w.utid = waker_utid), -1)
		from thread_state join thread using (utid) where tid > 0 and dur != 0 and state not in ('N', 'X') order by tid, ts`,
	`select name, value from stats where value > 0 and severity != 'info'`,
	`select tid, thread.name, pid from thread_state join thread using (utid) join process using (upid) where tid > 0 group by 1, 2, 3 order by 1`,
	`select tid, count(*), min(coalesce(extract_arg(slice.arg_set_id, 'debug.address'), extract_arg(slice.arg_set_id, 'args.address'))) is not null from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) where slice.name = 'page fault' group by tid order by tid`,
	`select count(*) from sched a join sched b on a.cpu = b.cpu and a.id < b.id and a.dur > 0 and b.dur > 0 and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur`,
}

func gotStates(rows [][]any) []stateRow {
	var out []stateRow
	for _, r := range rows {
		n := func(i int) int { return int(r[i].(float64)) }
		out = append(out, stateRow{n(0), int64(n(1)), int64(n(2)), r[3].(string), n(4), n(5)})
	}
	return out
}

func TestTraceProcessorHasTheStatesOfTheReel(t *testing.T) {
	reels := []*reel.File{scheduled(t, 9, 3000, reel.Header{}), scheduled(t, 2, 500, reel.Header{}), scheduled(t, 7, 900, reel.Header{Goroutines: true})}
	var files []string
	for _, f := range reels {
		files = append(files, exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{}))
	}
	for i, rows := range traceProcessor(t, files, stateQueries...) {
		f := reels[i/2]
		name := filepath.Base(files[i])
		compareStates(t, name, gotStates(rows[0]), wantStates(f, f.Clock().UnixNS(f.FirstTick())))
		if len(rows[1]) > 0 {
			t.Errorf("%s: trace_processor says %v", name, rows[1])
		}
		var threads, faults [][]any
		for _, th := range f.Threads() {
			threads = append(threads, []any{float64(th.TID), th.Name, 77.})
			n := 0
			f.Faults(th.Key, 0, f.LastTick(), func(reel.Fault) bool { n++; return true })
			if n > 0 {
				faults = append(faults, []any{float64(th.TID), float64(n), 1.})
			}
		}
		if got, want := fmt.Sprint(rows[2]), fmt.Sprint(threads); got != want {
			t.Errorf("%s: states are of threads %s, want %s", name, got, want)
		}
		if got, want := fmt.Sprint(rows[3]), fmt.Sprint(faults); got != want || len(faults) == 0 {
			t.Errorf("%s: page faults %s, want %s", name, got, want)
		}
		if got := fmt.Sprint(rows[4]); got != "[[0]]" {
			t.Errorf("%s: %s pairs of threads are on a processor at once", name, got)
		}
	}
}

func compareStates(t *testing.T, name string, got, want []stateRow) {
	t.Helper()
	for k := range min(len(got), len(want)) {
		if got[k] != want[k] {
			t.Errorf("%s: state %d is %+v, want %+v", name, k, got[k], want[k])
			return
		}
	}
	if len(got) != len(want) || len(want) < 20 {
		t.Errorf("%s: %d states, want %d", name, len(got), len(want))
	}
}

// Each file of a split trace has the states of its stretch of time, also those that began before.
func TestSplitTracesHaveTheStatesOfTheirTime(t *testing.T) {
	f := scheduled(t, 9, 6000, reel.Header{})
	var files []string
	for n, p := range splitParts(t, f, 64<<10) {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("part-%d.json", n)))
		if err := os.WriteFile(files[n], p.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 5 {
		t.Fatalf("%d parts", len(files))
	}
	var got []stateRow
	open := map[int]int{} // by thread: in got, what goes on at the end of the file
	for n, rows := range traceProcessor(t, files, stateQueries...) {
		if len(rows[1]) > 0 || fmt.Sprint(rows[4]) != "[[0]]" {
			t.Errorf("part %d: trace_processor says %v, and %v threads share a processor", n, rows[1], rows[4])
		}
		was := open
		open = map[int]int{}
		for _, r := range gotStates(rows[0]) {
			at := len(got)
			if i, some := was[r.tid]; some {
				delete(was, r.tid)
				if o := &got[i]; o.state == r.state && o.cpu == r.cpu {
					at = i
					if o.dur = r.dur; r.dur >= 0 {
						o.dur = r.from + r.dur - o.from
					}
				} else {
					o.dur = r.from - o.from
				}
			}
			if at == len(got) {
				got = append(got, r)
			}
			if r.dur < 0 {
				open[r.tid] = at
			}
		}
	}
	slices.SortStableFunc(got, func(a, b stateRow) int { return cmp.Or(cmp.Compare(a.tid, b.tid), cmp.Compare(a.from, b.from)) })
	compareStates(t, "parts", got, wantStates(f, f.Clock().UnixNS(f.FirstTick())))
}

// hostileStates is a reel with states as no kernel has them: on processors that there can't be, two threads on one and one on two, of threads
// that have the same ID or an impossible one, and hostile names.
func hostileStates(tb testing.TB) *reel.File {
	tb.Helper()
	return recordAs(tb, reel.Header{}, []string{"a", "b"}, func(w *reel.Writer) {
		for i, name := range append(hostileNames(), "with space", "a=b c=d") {
			tid := []int{5, 5, 6, -1, 1 << 30, 7, 8, 9}[i%8]
			if i > 8 {
				tid = 100 + i
			}
			tw := appendTo(tb, w, reel.Thread{TID: tid, Name: name, EndTick: uint64(i%2) * 9000}, reel.Entry(1100, base, 1), reel.Exit(8000, base, 1))
			err := tw.Sched([]reel.SchedEvent{
				{Time: 1008, Kind: reel.SchedIn, CPU: 1}, {Time: 1504, Kind: reel.SchedIn, CPU: 2}, {Time: 1600, Kind: reel.SchedIn, CPU: 1 << 30},
				{Time: 2000, Kind: reel.SchedPreempted}, {Time: 2064, Kind: reel.SchedIn, CPU: -1}, {Time: 2080, Kind: reel.SchedIn, CPU: int32(i)},
				{Time: 3008, Kind: reel.SchedBlocked}, {Time: 3008, Kind: reel.SchedUninterruptible}, {Time: 3200, Kind: reel.SchedWoken, Waker: -77},
				{Time: 3216, Kind: reel.SchedLost}, {Time: 3232, Kind: reel.SchedPreempted}, {Time: 4000, Kind: reel.SchedMajorFault}, {Time: 4000, Kind: reel.SchedIn, CPU: 1022},
				{Time: 5008, Kind: reel.SchedEnded},
			})
			if err != nil {
				tb.Fatal(err)
			}
		}
	})
}

func TestHostileStatesGiveFilesThatReadersTakeWhole(t *testing.T) {
	f := hostileStates(t)
	files := []string{exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})}
	for i, rows := range traceProcessor(t, files, stateQueries[1], `select count(distinct tid) from thread_state join thread using (utid) where tid > 0`,
		`select count(*) from slice where name in ('a', 'b')`) {
		if len(rows[0]) > 0 {
			t.Errorf("%s: trace_processor says %v", files[i], rows[0])
		}
		if got, want := fmt.Sprint(rows[1], rows[2]), "[[13]] [[17]]"; got != want {
			t.Errorf("%s: threads with states and calls: %s, want %s", files[i], got, want)
		}
	}
	for _, w := range catapult(t, files[1])[0].Warnings {
		if !strings.HasPrefix(w, "Unknown event sched_waking") && !strings.HasPrefix(w, "Unrecognized sleep state: N") {
			t.Errorf("Chrome's trace viewer warns: %q", w)
		}
	}
}
