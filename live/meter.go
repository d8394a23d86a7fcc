package live

import (
	"math"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

// Meter takes the events of one recording, as its [recorder.Destination], and gives out their sums, one stretch of time after the other.
type Meter struct {
	stretch time.Duration
	out     chan *reel.LiveSums
	spare   chan *reel.LiveSums

	// By the recorder's goroutine, from Begin on.
	tally *reel.LiveTally
	begun time.Time
	base  uint64 // the tick of begun
	due   uint64 // when the stretch is to end
	last  uint64 // tick of the last round
	rest  *reel.LiveSums

	mu        sync.Mutex // guards what follows
	perSecond float64    // ticks
	first     reel.ClockPair
	images    []reel.Image
	functions []reel.Function
	markers   []Marker // by ID
	threads   map[uint32]*reel.Thread
	keys      uint32
	budget    *reel.Budget // nil if there is none, or nobody has told yet
	off       map[uint32]recorder.FunctionOff
}

var _ recorder.Destination = (*Meter)(nil)

// NewMeter returns a Meter of stretches of that length. One that nobody takes goes on until the one before it has been taken.
func NewMeter(stretch time.Duration) *Meter {
	return &Meter{
		stretch: stretch, out: make(chan *reel.LiveSums, 1), spare: make(chan *reel.LiveSums, 4), threads: map[uint32]*reel.Thread{}, off: map[uint32]recorder.FunctionOff{},
	}
}

// Stretches delivers the sums of each stretch as it ends. Whoever has no more need of them may give them to Reuse.
func (m *Meter) Stretches() <-chan *reel.LiveSums { return m.out }

// Reuse takes sums back.
func (m *Meter) Reuse(s *reel.LiveSums) {
	select {
	case m.spare <- s:
	default:
	}
}

// Rest returns what was not taken from Stretches, when the recording has ended.
func (m *Meter) Rest() (rest []*reel.LiveSums) {
	select {
	case s := <-m.out:
		rest = append(rest, s)
	default:
	}
	if m.rest != nil {
		rest = append(rest, m.rest)
		m.rest = nil
	}
	return rest
}

// Begin begins with the first stretch.
func (m *Meter) Begin(h reel.Header) error {
	m.tally = reel.NewLiveTally(h.Goroutines)
	m.begun = time.Now()
	m.perSecond = float64(max(h.Clock.TicksPerSecond, 1))
	m.base = h.Clock.BaseTick + m.ticks(time.Duration(max(0, m.begun.UnixNano()-h.Clock.BaseUnixNS)))
	m.last = m.base
	m.due = m.base + m.ticks(m.stretch)
	m.tally.Begin(m.base)
	return nil
}

func (m *Meter) ticks(d time.Duration) uint64 { return uint64(d.Seconds() * m.perSecond) }

// AddImage adds an image to those that functions are named by.
func (m *Meter) AddImage(im reel.Image) (reel.ImageID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.images = append(m.images, im)
	return reel.ImageID(len(m.images)), nil
}

// AddFunctions adds functions.
func (m *Meter) AddFunctions(list []reel.Function) (firstID uint32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := uint32(len(m.functions)) + 1
	m.functions = append(m.functions, list...)
	goexit := uint32(0)
	for i := range list {
		if list[i].Name == reel.Goexit { // of which there may be another, for calls by the other convention
			goexit = first + uint32(i)
			break
		}
	}
	m.tally.Known(uint32(len(m.functions)), goexit)
	return first, nil
}

// Thread begins with a thread.
func (m *Meter) Thread(t reel.Thread) (recorder.DestinationThread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys++
	t.Key = m.keys
	m.threads[t.Key] = &t
	return &thread{m, &t, m.tally.Thread(t.Key)}, nil
}

// ClockPair measures the clock's rate.
func (m *Meter) ClockPair(tick uint64, unixNS int64) error {
	const enough = 500 * time.Millisecond
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first.Tick == 0 {
		m.first = reel.ClockPair{Tick: tick, UnixNS: unixNS}
	}
	if d := unixNS - m.first.UnixNS; d >= int64(enough) && tick > m.first.Tick {
		rate := float64(tick-m.first.Tick) / float64(d) * 1e9
		if rate > m.perSecond/2 && rate < 2*m.perSecond { // else somebody has set the clock
			m.perSecond = rate
		}
	}
	return nil
}

// Round ends the stretch if it is time to.
func (m *Meter) Round(tick uint64) error {
	m.tally.Round(tick)
	m.last = tick
	if tick < m.due || len(m.out) > 0 {
		return nil
	}
	m.reuse()
	m.out <- m.tally.Take(tick)
	if m.due += m.ticks(m.stretch); m.due <= tick {
		m.due = tick + m.ticks(m.stretch)
	}
	return nil
}

func (m *Meter) reuse() {
	for {
		select {
		case s := <-m.spare:
			m.tally.Reuse(s)
		default:
			return
		}
	}
}

// Flush has nothing to do.
func (m *Meter) Flush() error { return nil }

// Close ends the last stretch; Rest has it then.
func (m *Meter) Close() error {
	m.tally.Round(math.MaxUint64)
	m.rest = m.tally.Take(max(m.last, m.base+m.ticks(time.Since(m.begun))))
	return nil
}

// thread is a thread of the recording.
type thread struct {
	m     *Meter
	about *reel.Thread
	live  *reel.LiveThread
}

func (t *thread) Append(events []reel.Event) error {
	t.live.Push(events)
	return nil
}

func (t *thread) Dropped(entries, exits, _ uint64) error {
	t.live.Dropped(entries, exits)
	return nil
}

func (t *thread) Rename(name string) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.about.Name = name
	return nil
}

func (t *thread) End(tick uint64) error {
	t.live.End(tick)
	return nil
}
