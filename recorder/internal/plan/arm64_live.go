package plan

import (
	"slices"

	"github.com/callreel/callreel/isa/arm64"
)

// What of x16 and x17 is read by some instruction later on, before another writes it.
const (
	liveX16 uint8 = 1 << iota
	liveX17
	liveBoth = liveX16 | liveX17
)

// liveness finds out of every word whether x16 and x17 are alive before it. Callees may change both, and at a return or a tail call nothing is kept in
// them but that call's own target. Where it isn't known where control goes, both are alive.
func (w *walker) liveness() {
	uses := false
	for k := range w.words {
		in := &w.words[k]
		in.live = 0
		uses = uses || in.reached && in.GPRRead()&(1<<arm64.X16|1<<arm64.X17) != 0
	}
	if !uses {
		return
	}
	const most = 16
	for pass := 0; ; pass++ {
		changed := false
		for _, s := range slices.Backward(w.spans) {
			for k := s.to - 1; k >= s.from; k-- {
				if in := &w.words[k]; in.reached {
					live := w.before(k, s)
					changed = changed || live != in.live
					in.live = live
				}
			}
		}
		if !changed {
			return
		}
		if pass == most {
			break
		}
	}
	for k := range w.words {
		w.words[k].live = liveBoth
	}
}

// before is what is alive before words[k], by what is known of the words that follow.
func (w *walker) before(k int, s span) (live uint8) {
	in := &w.words[k]
	at := func(k int) uint8 {
		if k < 0 {
			return 0
		}
		return w.words[k].live
	}
	switch {
	case in.role == roleDetour:
		return liveBoth // the instruction that it leads to isn't looked at
	case in.Kind == arm64.Return:
	case in.Kind == arm64.IndirectJump && w.leaving[k]:
	case in.Kind == arm64.IndirectJump:
		live = liveBoth
	case in.Kind == arm64.Call: // linkers' veneers change them
	default:
		if to, ok := in.Target(in.addr); ok {
			live = at(w.indexOf(to))
		}
		if !in.Ends() && k+1 < s.to {
			live |= at(k + 1)
		}
	}
	written, read := in.GPRWritten(), in.GPRRead()
	for n, r := range [...]arm64.Reg{arm64.X16, arm64.X17} {
		bit := liveX16 << n
		if written&r.Mask() != 0 && in.Class != arm64.SVE && in.Class != arm64.SME {
			live &^= bit
		}
		if read&r.Mask() != 0 {
			live |= bit
		}
	}
	return live
}
