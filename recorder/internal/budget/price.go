package budget

import (
	"math"
	"slices"
)

// What a call's events cost differs by a factor of four between programs: besides the stub's own instructions there is what they push out of
// caches and predictors. So it is measured on the program itself, see gauge.

// The price of a call, in nanoseconds of processor time.
const (
	leastPrice = 15 // what a stub takes with everything in the nearest cache
	mostPrice  = 200
	// doubt is by how much dearer a call is taken for than was measured. What is measured are calls of functions that are called often, whose
	// stubs are in caches; what is kept are those that are called seldom.
	doubt = 1.3
)

// estimate is what a call is thought to cost, in nanoseconds of processor time, and its standard error.
type estimate struct{ ns, sd float64 }

// firstPrice is what is gone by until it is measured. Calls of five programs were measured at 28 to 68 ns; it is high, since what is left out is
// soon had back.
var firstPrice = estimate{60, 30}

// with is the estimate together with a measurement: each counts by how sure it is.
func (e estimate) with(m estimate) estimate {
	we, wm := 1/(e.sd*e.sd), 1/(m.sd*m.sd)
	return estimate{(e.ns*we + m.ns*wm) / (we + wm), math.Sqrt(1 / (we + wm))}
}

// later is the estimate some time later, or for another load.
func (e estimate) later(other bool) estimate {
	drift := 0.2
	if other {
		drift = 0.5
	}
	return estimate{e.ns, min(math.Hypot(e.sd, drift*e.ns), firstPrice.sd)}
}

// price is what is gone by: to spend more than is allowed is worse than to spend less.
func (e estimate) price() float64 {
	const careful = 0.5
	return min(max((e.ns+careful*e.sd)*doubt, leastPrice), mostPrice)
}

// load is what was counted in a stretch of time.
type load struct {
	ticks   float64 // of the clock, for how long
	cpu     float64 // seconds of processor time that the process used
	all     float64 // calls of all that were on, those that were dropped included
	dropped float64 // of these: of which functions isn't known
}

// gauge measures the price of a call. It is a function with many calls beneath it, which stays on while most of these are switched off: how
// much sooner its calls end, for each call less beneath them, is what one costs. What the program does outside of it doesn't matter: how much
// it does at once, or by the clock.
type gauge struct {
	id     uint32 // 0 for none
	before taken
	after  []taken // stretches since, with what is off out of the text
	calls  float64 // its calls in the sample
	done   bool    // it has measured: it need not stay on
}

// taken is what calls of a function took in a stretch.
type taken struct {
	cpu     float64 // seconds of the process's processor time in the stretch
	ended   float64 // calls
	mean    float64 // ns, of a call
	beneath float64 // calls within one
}

func takenBy(f *Function, cpu float64) taken {
	return taken{cpu, float64(f.Ended), f.Mean, f.Beneath}
}

const (
	gaugeLeast   = 100  // calls that it has in a sample
	gaugeCovers  = 0.15 // share of all calls that are beneath it
	gaugeMost    = 64   // stretches that are kept
	gaugeEnough  = 5    // of them
	gaugeAtLeast = 0.05 // seconds of processor time in these, and twice as much as in the sample
	gaugeBeneath = 2    // calls less beneath each of its calls
)

// gaugeOf is the function of a sample by which prices are measured, 0 if there is none: that with the most calls of those under which a good part
// of all calls are, if it may have them. What is called oftenest is called for each piece of work, and not for as many as there just are.
func gaugeOf(list []Function, allowed float64) (id uint32) {
	all := 0.0
	for i := range list {
		all += float64(list[i].Calls)
	}
	most := uint64(0)
	for i := range list {
		f := &list[i]
		if f.Ended >= gaugeLeast && float64(f.Calls) <= allowed && float64(f.Ended)*f.Beneath >= gaugeCovers*all && f.Calls > most {
			id, most = f.ID, f.Calls
		}
	}
	return id
}

// begin begins anew with a sample in which all was on.
func (g *gauge) begin(list []Function, cpu, allowed float64) {
	*g = gauge{id: gaugeOf(list, allowed)}
	for i := range list {
		if list[i].ID == g.id {
			g.before, g.calls = takenBy(&list[i], cpu), float64(list[i].Calls)
		}
	}
}

// keeps marks the function that stays on for as long as nothing is measured.
func (g *gauge) keeps(list []Function) {
	if g.id == 0 || g.done {
		return
	}
	for i := range list {
		list[i].Kept = list[i].Kept || list[i].ID == g.id
	}
}

// give gives it up to stay on, where its calls alone are more than may be.
func (g *gauge) give(list []Function, allowed float64) {
	for i := range list {
		if list[i].ID == g.id && float64(list[i].Calls) > allowed {
			g.done = true
		}
	}
}

// without notes that functions go off beside what the last sample has chosen.
func (g *gauge) without(off []uint32) {
	g.after = nil
	if slices.Contains(off, g.id) {
		*g = gauge{}
	}
}

// add adds a stretch with what is off out of the text.
func (g *gauge) add(list []Function, cpu float64) {
	if g.id == 0 || len(g.after) >= gaugeMost {
		return
	}
	for i := range list {
		if f := &list[i]; f.ID == g.id && f.Ended > 0 {
			g.after = append(g.after, takenBy(f, cpu))
		}
	}
}

// measured is what a call costs by it. It returns false as long as that can't be told.
func (g *gauge) measured() (m estimate, ok bool) {
	var a taken
	for _, s := range g.after {
		a.cpu, a.ended, a.beneath = a.cpu+s.cpu, a.ended+s.ended, a.beneath+s.beneath*s.ended
		a.mean += s.mean * s.ended
	}
	b := &g.before
	if len(g.after) < gaugeEnough || a.cpu < max(gaugeAtLeast, 2*b.cpu) || a.ended < gaugeLeast || b.ended < gaugeLeast {
		return m, false
	}
	a.mean /= a.ended
	less := b.beneath - a.beneath/a.ended
	if less < gaugeBeneath || a.mean <= 0 || b.mean <= 0 || b.cpu <= 0 { // a clock may be coarse
		return m, false
	}
	// A machine is faster and slower from one moment to the next, and so are stretches, the shorter the more.
	spread := 0.0
	for _, s := range g.after {
		spread += (s.mean - a.mean) * (s.mean - a.mean) * s.cpu
	}
	noise := spread / (a.mean * a.mean) / float64(len(g.after)-1) // variance of a second of processor time, relative
	sd := math.Hypot(b.mean*math.Sqrt(noise/b.cpu), a.mean*math.Sqrt(noise/a.cpu))
	ns := (b.mean - a.mean) / less
	const least = 0.1 // of what is measured: in turns the same function differs by that
	m = estimate{ns, max(sd/less, least*math.Abs(ns), 1)}
	return m, !math.IsNaN(m.ns) && !math.IsNaN(m.sd)
}
