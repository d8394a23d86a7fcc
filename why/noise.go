package why

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// scatter is how far values of one kind go by nature, told from a sample of them.
type scatter struct {
	sorted []float64
	n      float64 // how many there are, of which the sample is
}

// newScatter takes a sample of n values.
func newScatter(values []float64, n uint64) *scatter {
	s := &scatter{sorted: slices.Clone(values), n: max(float64(n), float64(len(values)), 1)}
	slices.Sort(s.sorted)
	return s
}

func (s *scatter) rank(part float64) float64 {
	return s.sorted[min(len(s.sorted)-1, int(part*float64(len(s.sorted))))]
}

// Quantiles of the normal distribution.
const z80, z95 = 0.8416, 1.6449

// contaminated is how much steeper the tail may be than the middle before it counts as another kind of calls: that a few in a hundred are
// slow for a cause must not hide that cause.
const contaminated = 2.5

// most is up to where the largest of the values goes by nature. Times scatter by factors rather than by sums: the logarithms' spread
// between the median, the 80th and the 95th percentile is drawn out to as many values as there are. That fits log-normal times, and is
// on the safe side for exponential ones.
func (s *scatter) most() float64 {
	if len(s.sorted) == 0 {
		return math.Inf(1)
	}
	log := func(part float64) float64 { return math.Log(max(s.rank(part), 1)) }
	m, h, t := log(0.5), log(0.8), log(0.95)
	middle, tail := (h-m)/z80, (t-h)/(z95-z80)
	slope := max(middle, tail)
	if tail > contaminated*middle+0.1 {
		slope = contaminated * middle
	}
	slope = max(slope, leastSpread)
	return math.Exp(h + slope*(normalQuantile(1-chance/(s.n+1))-z80))
}

// leastTail is of how many values the tail is looked at: of fewer there are none.
const leastTail = 500

// heavy says whether the tail is a power of the values, as of sizes of files: then its logarithm goes on by as much for each doubling of how
// many are beyond, and the largest are far from all others by nature. It returns by how much, for each factor of e. Times that scatter
// otherwise fall off, and what has a cause makes a step.
func (s *scatter) heavy() (slope float64, is bool) {
	if len(s.sorted) < leastTail {
		return 0, false
	}
	at := func(beyond float64) float64 { return math.Log(max(s.rank(1-beyond), 1)) }
	between := func(from, to float64) float64 { return (at(to) - at(from)) / math.Log(from/to) }
	const straight, step = 0.65, 2.0
	first, second := between(0.2, 0.05), between(0.05, 0.01)
	if second < straight*first || second > step*first || first < straight*between(0.5, 0.2) {
		return 0, false
	}
	return between(0.2, 0.01), true
}

// step says whether values of at least v are beyond a step in a heavy tail: where the next one is farther down than chance explains. Of a
// power the logarithms of the largest and the next differ by the slope on average, those of the second and the third by half of it, and so
// on, each exponentially. largest are the largest values, in falling order.
func (s *scatter) step(v, slope float64, largest []float64) bool {
	const slow = 0.05 // how many may have a cause
	most := min(len(largest)-1, max(int(slow*s.n), 1))
	for i := 1; i <= most; i++ {
		gap := math.Log(max(largest[i-1], 1) / max(largest[i], 1))
		if v >= largest[i-1] && float64(i)*gap > slope*math.Log(float64(most)/chance) {
			return true
		}
	}
	return false
}

// chance is how likely it may be that of all calls one comes by nature where it counts as an outlier.
const chance = 0.01

// leastSpread is how much any machine's times scatter, as the deviation of their logarithms.
const leastSpread = 0.15

// normalQuantile is the inverse of the normal distribution above its middle (Abramowitz and Stegun, 26.2.23; right to 0.00045).
func normalQuantile(p float64) float64 {
	t := math.Sqrt(-2 * math.Log(max(1-p, 1e-300)))
	return t - (2.515517+0.802853*t+0.010328*t*t)/(1+1.432788*t+0.189269*t*t+0.001308*t*t*t)
}

// outlier says whether a call as a whole is beyond the scatter of all others.
func (s *scatter) outlier(a *aligned) bool { return float64(a.slow.duration()) > s.most() }

// scatter is that of the durations of all other calls.
func (p *peerSet) scatter() *scatter {
	values := make([]float64, len(p.durations))
	for i, d := range p.durations {
		values[i] = float64(d)
	}
	return newScatter(values, p.count)
}

// unusual says whether what a call spent in a place is beyond what others spend there: whether it alone would make a call an outlier. Time
// on processors and time blocked are held against the same of others, since what a busy machine adds to all calls isn't in them; other
// times count only in a call that is an outlier as a whole.
func (a *aligned) unusual(p *place, marks []bool, peers *peerSet, outlier bool) bool {
	pick := func(s states) float64 { return float64(s.sum()) }
	switch p.state {
	case int(reel.StateRunning), int(reel.StateBlocked):
		pick = func(s states) float64 { return float64(s[p.state]) }
	default:
		if !outlier {
			return false
		}
	}
	var here, alike []float64 // of all, and of those that go there
	for i := range a.others {
		v := pick(a.others[i].spentIn(marks))
		here = append(here, v)
		if a.others[i].callsOf(p.named()) > 0 {
			alike = append(alike, v)
		}
	}
	if len(here) == 0 || beyond(here, a.median, pick(a.slow.spentIn(marks)), peers.count) {
		return true
	}
	// Where half of the calls don't go, all of them scatter by far more than those do that go there.
	return len(alike) >= leastAlike && len(alike) < len(here) && beyond(alike, a.median, pick(a.slow.spentIn(marks)), peers.count*uint64(len(alike))/uint64(len(here)))
}

// leastAlike is how many calls at least have to go where a slow one goes for that to be held against them alone.
const leastAlike = 40

// beyond says whether a time is beyond the scatter of n others, of which here are a sample, everything else being as usual.
func beyond(here []float64, median uint64, v float64, n uint64) bool {
	here = slices.Clone(here)
	slices.Sort(here)
	rest := max(0, float64(median)-here[len(here)/2])
	for i := range here {
		here[i] += rest
	}
	return v+rest > newScatter(here, n).most()
}

// leastReady is for how long at least a thread has to wait for a processor, in nanoseconds, for that to be a cause: two or three turns of
// other threads are how a busy machine works, and any call may meet them.
const leastReady = 8e6

// leastExcess is what a cause has to come to at least, in nanoseconds: less is what interrupts, and the host of a virtual machine, take now and
// then.
const leastExcess = 150e3

// natural says whether a cause is no more than what the scheduler does to any call.
func (c *Cause) natural() bool {
	if c.ExcessNS < leastExcess {
		return true
	}
	waited := c.State == "blocked" && c.WaitsFor != nil && c.WaitsFor.State == "ready"
	return (c.State == "ready" || waited) && c.ExcessNS < leastReady
}
