package budget

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/recorder/internal/target"
)

// program is a process whose functions are on, off or out. It notes what was off.
type program struct {
	off, out map[uint32]bool
	kept     map[uint32]bool
	open     map[uint32]bool // functions of which a call is open
	foreign  map[uint32]bool // functions whose text somebody else has changed
	tries    int             // to take sites out
	offs     []Off
	tick     uint64
	busy     bool          // it uses processor time whenever that is asked for
	used     time.Duration // so much so far
	opens    int           // for so many questions more a call of each function is open
	takenOut func()        // nil for nothing
	fails    int           // for so many times more nothing can be taken out
}

func (p *program) Reject(off, on []uint32) ([]uint32, error) {
	for _, id := range off {
		p.off[id] = true
	}
	for _, id := range on {
		delete(p.off, id)
	}
	return off, nil
}

func (p *program) Closed(ids []uint32) (closed []uint32) {
	if p.opens > 0 {
		p.opens--
		return nil
	}
	for _, id := range ids {
		if p.off[id] && !p.open[id] {
			closed = append(closed, id)
		}
	}
	return closed
}

func (p *program) Kept(id uint32) bool { return p.kept[id] }

func (p *program) TakeOut(_ context.Context, ids map[uint32]bool) (d target.TakenOut, _ error) {
	p.tries++
	if p.fails > 0 {
		p.fails--
		return d, errors.New("it is too busy")
	}
	if p.takenOut != nil {
		p.takenOut()
	}
	for id := range ids {
		if p.foreign[id] {
			continue
		}
		p.out[id] = true
		d.Functions = append(d.Functions, id)
		d.Sites++
	}
	return d, nil
}

func (p *program) PutBack(_ context.Context, ids map[uint32]bool) (d target.TakenOut, _ error) {
	for id := range ids {
		delete(p.out, id)
		d.Functions = append(d.Functions, id)
		d.Sites++
	}
	return d, nil
}

// keeper is one with a budget of 2 %, of a program that nothing has been left out of.
func keeper() (*Keeper, *program) {
	p := &program{off: map[uint32]bool{}, out: map[uint32]bool{}, kept: map[uint32]bool{}, open: map[uint32]bool{}}
	k := New(Config{Share: 0.02, Sites: p, Probes: p, InLoop: func(f func()) error { f(); return nil }, Tally: NewTally(false, 0),
		CPU: func() (time.Duration, error) {
			if p.busy {
				p.used += leastSample
			}
			return p.used, nil
		}, Ticks: func() uint64 { p.tick++; return p.tick }, TicksPerSecond: 1e9,
		Off: func(list []Off) {
			p.offs = append(p.offs, slices.DeleteFunc(list, func(o Off) bool { return o.To == 0 })...)
		}, Notice: func(string, ...any) {}})
	return k, p
}

func sorted(ids map[uint32]bool) []uint32 { return slices.Sorted(maps.Keys(ids)) }

// work is what a second of processor time has in calls, with so many requests.
func work(requests uint64, hot uint32) []Function {
	return []Function{
		{ID: 1, Calls: requests, Half: 90_000, P99: 200_000, Max: 400_000},
		{ID: 2, Calls: 10 * requests, Half: 5_000, P99: 9_000, Max: 60_000},
		{ID: hot, Calls: 1000 * requests, Half: 40, P99: 90, Max: 800},
	}
}

func loadOf(list []Function, cpu float64) (l load) {
	for _, f := range list {
		l.all += float64(f.Calls)
	}
	l.cpu = cpu
	return l
}

func TestAHotLeafIsTakenOutWhenNoneOfItsCallsIsOpen(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	p.open[3] = true
	list := work(10_000, 3)
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{3}) || len(p.out) != 0 {
		t.Fatalf("off %v, out %v", got, p.out)
	}
	p.open[3] = false
	if err := k.close(ctx); err != nil {
		t.Fatal(err)
	}
	s := k.Stats()
	if got := sorted(p.out); !slices.Equal(got, []uint32{3}) || s.Off != 1 || s.Removed != 1 || s.Calls > 0.02 || s.Time != 1 {
		t.Errorf("out %v, %+v", got, s)
	}
}

func TestTheProcessIsNotStoppedAgainAndAgainForSitesThatCannotBeTakenOut(t *testing.T) {
	k, p := keeper()
	p.foreign = map[uint32]bool{3: true}
	list := work(10_000, 3)
	if err := k.sample(t.Context(), list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := k.close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p.tries != 1 || !p.off[3] || p.out[3] {
		t.Errorf("%d tries; off %v, out %v", p.tries, p.off, p.out)
	}
}

func TestWhatIsCalledMoreThanBeforeIsLeftOutToo(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	list := work(10_000, 3)
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	list = work(10_000, 4)
	if err := k.look(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{3, 4}) {
		t.Errorf("off %v", got)
	}
	if s := k.Stats(); s.Measured < 0.02 {
		t.Errorf("measured %v while too much was called", s.Measured)
	}
}

// What is left out after a sample in which nothing had to be counts in what is recorded.
func TestWhatIsRecordedIsToldWithoutWhatWasLeftOutSince(t *testing.T) {
	k, _ := keeper()
	ctx := t.Context()
	few := []Function{{ID: 1, Calls: 1000, Half: 900, P99: 2000, Max: 3000, Self: 1e6}}
	if err := k.sample(ctx, few, loadOf(few, 1)); err != nil {
		t.Fatal(err)
	}
	if s := k.Stats(); s.Off != 0 || s.Calls != 1 || s.Time != 1 {
		t.Fatalf("%+v", s)
	}
	more := append(slices.Clone(few), Function{ID: 2, Calls: 1_000_000, Half: 100, P99: 200, Max: 300, Self: 3e6})
	if err := k.look(ctx, more, loadOf(more, 2)); err != nil {
		t.Fatal(err)
	}
	if s := k.Stats(); s.Off != 1 || s.Calls != 1000.0/501_000 || s.Time != 1e6/2.5e6 {
		t.Errorf("%+v", s)
	}
}

func TestAnotherLoadIsSampled(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	list := work(10_000, 3)
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	few := list[:2]
	for range 4 {
		if err := k.look(ctx, few, loadOf(few, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if k.sampled = time.Now().Add(-30 * time.Second); k.isDue() {
		t.Error("the same load is sampled again")
	}
	other := []Function{{ID: 7, Calls: 5000, Half: 900, P99: 2000, Max: 3000}}
	for range 3 {
		if err := k.look(ctx, other, loadOf(other, 0.3)); err != nil {
			t.Fatal(err)
		}
	}
	if !k.isDue() {
		t.Error("another load isn't sampled")
	}
	// All costs 0.6 of the processor time: 80 ms of that are a quarter of 2 % of ten seconds.
	if k.sampled = time.Now().Add(-9 * time.Second); k.isDue() {
		t.Error("samples take more than a quarter of the budget")
	}
	k.sampled, p.busy = time.Now().Add(-11*time.Second), true
	clear(k.known) // it is long ago
	if err := k.again(ctx); err != nil {
		t.Fatal(err)
	}
	if len(p.off) != 0 || len(p.out) != 0 || len(p.offs) != 1 || p.offs[0].ID != 3 || p.offs[0].From >= p.offs[0].To {
		t.Errorf("off %v, out %v, were off %v", p.off, p.out, p.offs)
	}
}

func TestAPriceThatIsMeasuredLetsMoreIn(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	// 10 µs of work for each call of function 2, and 20 ns for each call that is recorded below it.
	list := []Function{{ID: 2, Calls: 10_000, Half: 9_000, P99: 9_500, Max: 60_000, Ended: 10_000, Mean: 10_000 + 1040*20, Beneath: 1040},
		{ID: 3, Calls: 400_000, Half: 100, P99: 200, Max: 900}, {ID: 4, Calls: 10_000_000, Half: 40, P99: 90, Max: 800}}
	if err := k.sample(ctx, list, loadOf(list, 1+0.02*10.4)); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{3, 4}) {
		t.Fatalf("off %v", got)
	}
	k.chosen = time.Now().Add(-time.Minute)
	for range gaugeEnough {
		on := []Function{{ID: 2, Calls: 60_000, Half: 9_000, P99: 9_500, Max: 60_000, Ended: 60_000, Mean: 10_000}}
		if err := k.look(ctx, on, loadOf(on, 0.6)); err != nil {
			t.Fatal(err)
		}
	}
	if s := k.Stats(); s.Price < 20 || s.Price > 30 || s.Sure == 0 {
		t.Errorf("%v ns a call, give or take %v of the share", s.Price, s.Sure)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{4}) || p.out[3] {
		t.Errorf("off %v, out %v", got, p.out)
	}
}

// A process that rests while all is on says nothing: what was off goes off again, and no sooner than after the usual time is it tried again.
func TestWhatIsOffStaysOffWhenASampleSeesNothing(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	list := work(10_000, 3)
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	before := k.before
	k.sampled, k.differs = time.Now().Add(-time.Hour), 3
	if err := k.again(ctx); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{3}) || k.isDue() || k.before != before {
		t.Errorf("off %v, due %v; by %+v, before by %+v", got, k.isDue(), k.before, before)
	}
}

// A burst is told of each time there are so many events more, also if nobody looks meanwhile.
func TestABurstIsToldOfUntilSomebodyLooks(t *testing.T) {
	tally := NewTally(false, 0)
	tally.take(0, 1e9, 100)
	for range 3 {
		tally.Saw(101, 1)
		select {
		case <-tally.bursts:
		default:
			t.Fatal("it isn't told of")
		}
	}
	tally.Saw(50, 1)
	select {
	case <-tally.bursts:
		t.Error("half as many are told of")
	default:
	}
}

// Sites are taken out while one burst comes after the other: of functions that are recorded whatever they cost, there may always be one.
func TestSitesAreTakenOutBetweenBursts(t *testing.T) {
	k, p := keeper()
	p.busy, p.opens = true, 3
	k.off[3], p.off[3] = &offState{}, true
	k.known.rejected(&Function{ID: 3, Calls: 1_000_000}, 1, 50, time.Now(), 0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p.takenOut = cancel
	go func() {
		for ctx.Err() == nil {
			select {
			case k.c.Tally.bursts <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
	if err := k.keep(ctx); err != nil {
		t.Fatal(err)
	}
	if !p.out[3] {
		t.Errorf("off %v, out %v", p.off, p.out)
	}
}

// A process that rests is waited for until it works: what it calls while it rests isn't taken for its load.
func TestTheFirstSampleIsOfWork(t *testing.T) {
	k, p := keeper()
	asked := 0
	k.c.CPU = func() (time.Duration, error) {
		if asked++; asked > 3 {
			p.used += leastCPU
		}
		return p.used, nil
	}
	if err := k.first(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k.stats.Samples != 1 || k.before.cpu < leastFirst.Seconds() {
		t.Errorf("%d samples, of %.3f s", k.stats.Samples, k.before.cpu)
	}
}

// A stretch too short to say anything is kept for the next; one with more calls than the budget is for says enough.
func TestAFloodIsLeftOutHoweverShortTheStretch(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	few := []Function{{ID: 5, Calls: 3_000, Half: 40, P99: 90, Max: 800}}
	for i := range 4 {
		if err := k.look(ctx, few, loadOf(few, 0.0003)); err != nil {
			t.Fatal(err)
		}
		// 1 ms of calls may be ahead: 10,000 of them, at the price that is assumed at first.
		if got, want := p.off[5], i == 3; got != want {
			t.Errorf("it is off: %v, behind %d calls", got, 3_000*(i+1))
		}
	}
	many := []Function{{ID: 6, Calls: 40_000, Half: 40, P99: 90, Max: 800}}
	if err := k.look(ctx, many, loadOf(many, 0.0004)); err != nil {
		t.Fatal(err)
	}
	if !p.off[6] {
		t.Error("a flood of 0.4 ms stays on")
	}
	if n, most := k.known.expected(6, 1, time.Now(), 0), uint64(1_000_000_000)/leastPrice; n > most || n < most/2 {
		t.Errorf("%d calls a second are expected of it: no program makes more than %d", n, most)
	}
}

// Who reads the rings lets the keeper act on a burst, and no longer than that takes.
func TestWhoReadsTheRingsGivesWay(t *testing.T) {
	k, _ := keeper()
	tally := k.c.Tally
	tally.giveWay = time.Minute
	served := 0
	serve := func() { served++ }
	if tally.GiveWay(serve); served != 0 {
		t.Error("it gives way to a keeper that doesn't listen")
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan bool)
	go func() { waited <- k.wait(ctx, time.Minute) }()
	for !tally.listens.Load() {
		time.Sleep(time.Millisecond)
	}
	tally.soon, tally.next = 10, 10
	if tally.Saw(5, 1) {
		t.Error("some events are a burst")
	}
	if !tally.Saw(6, 2) || !<-waited {
		t.Error("a burst isn't told of")
	}
	tally.GiveWay(func() {
		if !tally.left {
			t.Error("all has been read, by what the keeper is told")
		}
		if served++; served == 3 {
			if err := k.reject(ctx, []uint32{5}, nil, nil, 1); err != nil {
				t.Error(err)
			}
		}
	})
	if served != 3 || tally.left {
		t.Errorf("it was served %d times, where the keeper had acted behind the third", served)
	}
	go func() { waited <- k.wait(ctx, time.Millisecond) }()
	if <-waited || tally.listens.Load() {
		t.Error("a keeper that nobody has told of a burst is waited for")
	}
	cancel()
}

// What fails may do so only now. The budget is kept from when it works again.
func TestABudgetIsKeptAgainAfterAFailure(t *testing.T) {
	k, p := keeper()
	p.busy, p.fails = true, 1
	k.c.Notice = func(format string, args ...any) { t.Logf(format, args...) }
	ctx, end := context.WithCancel(t.Context())
	defer end()
	p.takenOut = end
	list := work(10_000, 3)
	if err := k.sample(ctx, list, loadOf(list, 1)); err == nil {
		t.Fatal("it hasn't failed")
	}
	k.Run(ctx)
	if !p.out[3] || p.tries != 2 {
		t.Errorf("%d tries, out %v", p.tries, p.out)
	}
}
