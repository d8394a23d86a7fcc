package recorder

import "github.com/callreel/callreel/reel"

// tellMade puts into the reel how many calls of each function there were, where not all are recorded.
func (r *recording) tellMade() error {
	if r.s.Runtime.Every == 0 || r.w == nil {
		return nil
	}
	made := map[uint32]uint64{}
	for id := uint32(1); id < r.nextID; id++ {
		calls := r.s.Memory.Count(id)
		if calls == 0 {
			continue
		}
		e := [1]reel.Event{{Word: id << 1}}
		if err := r.functions.Translate(e[:]); err != nil {
			return err
		}
		made[e[0].Word>>1] += calls
	}
	return r.w.Made(r.s.Runtime.Every, made)
}
