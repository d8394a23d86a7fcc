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

// chance is how likely it may be that of all calls one comes by nature where it counts as an outlier.
const chance = 0.01

// leastSpread is how much any machine's times scatter, as the deviation of their logarithms.
const leastSpread = 0.15

// normalQuantile is the inverse of the normal distribution above its middle (Abramowitz and Stegun, 26.2.23; right to 0.00045).
func normalQuantile(p float64) float64 {
	t := math.Sqrt(-2 * math.Log(max(1-p, 1e-300)))
	return t - (2.515517+0.802853*t+0.010328*t*t)/(1+1.432788*t+0.189269*t*t+0.001308*t*t*t)
}

// outlier says whether the call as a whole is beyond the scatter of all others.
func (x *explainer) outlier(a *aligned, peers *peerSet) bool {
	values := make([]float64, len(peers.durations))
	for i, d := range peers.durations {
		values[i] = float64(d)
	}
	return float64(a.slow.duration()) > newScatter(values, peers.count).most()
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
	var here []float64
	for i := range a.others {
		here = append(here, pick(a.others[i].spentIn(marks)))
	}
	if len(here) == 0 {
		return true
	}
	slices.Sort(here)
	// Everything else being as usual.
	rest := max(0, float64(a.median)-here[len(here)/2])
	for i := range here {
		here[i] += rest
	}
	return pick(a.slow.spentIn(marks))+rest > newScatter(here, peers.count).most()
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
