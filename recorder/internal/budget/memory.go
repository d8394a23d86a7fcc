package budget

import "time"

// memory is what is known of functions from when they were on: a program that does several kinds of work in turn calls some of them in each.
type memory map[uint32]*remembered

// remembered is what is known of one function.
type remembered struct {
	slow  Function  // the longest times that were seen: what has ever been slow is kept
	rate  float64   // calls for a second of processor time, the most that was seen when it was rejected
	last  time.Time // when it was rejected last
	times int       // so often within forgetAfter
	// held is until when rate is taken to be true though nothing is called now, and heldCPU the same in the process's processor time: one that
	// rests most of the time has done nothing else meanwhile.
	held    time.Time
	heldCPU time.Duration
	hold    time.Duration // how long that was
	flood   bool          // it alone cost floodCost
}

// forgotten says whether the function is as one that was never rejected.
func (r *remembered) forgotten(now time.Time) bool {
	return now.Sub(r.last) > max(forgetAfter, 2*r.hold)
}

const (
	// forgetAfter is when a function that came back on and stayed on is as one that was never rejected.
	forgetAfter = 2 * time.Minute
	// firstHold is for how long a function that has been rejected once stays so though it isn't called any more. If it was called as before
	// when it had come back it is longHold, which is tripled each time, up to mostHold.
	firstHold, longHold, mostHold = time.Second, 8 * time.Second, time.Minute
	// A function is a flood that alone costs this part of the processor time while it is called. Until it is off again it makes what calls it
	// much slower, and fills the rings. So it is held for longHold when it is rejected first, and for up to mostFlood.
	floodCost = 0.5
	mostFlood = 10 * time.Minute
)

// saw notes how long calls took.
func (m memory) saw(list []Function) {
	for i := range list {
		f := &list[i]
		if !f.IsSlow() && m[f.ID] == nil {
			continue
		}
		r := m.at(f.ID)
		r.slow.P99, r.slow.Max = max(r.slow.P99, f.P99), max(r.slow.Max, f.Max)
	}
}

// recall adds what was known before to a function's times.
func (m memory) recall(list []Function) {
	for i := range list {
		if r := m[list[i].ID]; r != nil {
			list[i].P99, list[i].Max = max(list[i].P99, r.slow.P99), max(list[i].Max, r.slow.Max)
		}
	}
}

// rejected notes that a function goes off which was called so often in a stretch of so many seconds of processor time, at a price in ns a
// call. now, and the processor time that the process has used so far, are when that is.
func (m memory) rejected(f *Function, cpu, price float64, now time.Time, used time.Duration) {
	r := m.at(f.ID)
	if r.forgotten(now) {
		r.times, r.rate = 0, 0
	}
	r.last = now
	r.times++
	rate := min(float64(f.Calls)/cpu, 1e9/leastPrice) // of a short stretch it isn't known exactly
	n, most := r.times, mostHold
	if r.flood = rate*price/1e9 >= floodCost; r.flood {
		n, most = n+1, mostFlood
	}
	r.hold = firstHold
	if n > 1 {
		r.hold = longHold
		for range min(n, 7) - 2 {
			r.hold *= 3
		}
	}
	r.hold = min(r.hold, most)
	const part = 2 // of a hold has to be processor time
	r.held, r.heldCPU = now.Add(r.hold), used+r.hold/part
	r.rate = max(r.rate, rate)
}

// expected is how many calls of a function are to be expected in so many seconds of processor time, if it came on.
func (m memory) expected(id uint32, cpu float64, now time.Time, used time.Duration) uint64 {
	r := m[id]
	if r == nil || now.After(r.held) && used > r.heldCPU || r.forgotten(now) {
		return 0
	}
	return uint64(r.rate * cpu)
}

// unseen is the same of a function of which there was no call while all was on: that it has become rare was not seen, either.
func (m memory) unseen(id uint32, cpu float64, now time.Time, used time.Duration) uint64 {
	if r := m[id]; r != nil && now.Sub(r.last) <= max(mostHold, r.hold) {
		return uint64(r.rate * cpu)
	}
	return m.expected(id, cpu, now, used)
}

// isHeldFlood says whether a function is a flood that is held: what it would cost to see it again is known.
func (m memory) isHeldFlood(id uint32, now time.Time, used time.Duration) bool {
	r := m[id]
	return r != nil && r.flood && m.expected(id, 1, now, used) > 0
}

func (m memory) at(id uint32) *remembered {
	r := m[id]
	if r == nil {
		r = &remembered{}
		m[id] = r
	}
	return r
}
