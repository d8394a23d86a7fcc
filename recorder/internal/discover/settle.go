package discover

import "sort"

// least is how many bytes a function has that nothing leads to, at least: less is what compilers leave behind jumps.
const least = 3

// settle decides which segments are functions, which are parts of some, and which are not known to be either.
func (s *state) settle(list []segment) (out []Function) {
	firm := make([]Range, 0, len(list)) // those that are functions surely
	for i := range list {
		if g := &list[i]; g.certain() {
			firm = append(firm, g.Range)
		}
	}
	inside := func(addr uint64) bool { // a function, behind its start
		i := sort.Search(len(firm), func(i int) bool { return firm[i].Start >= addr })
		return i > 0 && addr < firm[i-1].End || s.inKnown(addr)
	}
	for i := range list {
		g := &list[i]
		back := false
		if !g.certain() {
			for _, to := range g.jumps {
				if back = inside(to); back {
					break
				}
			}
		}
		switch g.kind(back) {
		case isFunction:
			out = append(out, Function{Range: g.Range, Evidence: g.evidence})
		case isPart:
			out = append(out, Function{Range: g.Range, Evidence: g.evidence, Part: true})
		}
	}
	return out
}

// kind is what a segment turns out to be.
type kind uint8

const (
	isNothing kind = iota
	isFunction
	isPart
)

// certain says that it is a function, whatever else is known of it.
func (g *segment) certain() bool { return g.evidence == Called && g.sound }

// kind decides. back says that a jump leads back into the middle of a function.
func (g *segment) kind(back bool) kind {
	switch {
	case g.certain():
		return isFunction
	case !g.sound || g.label:
		return isNothing
	case back && g.jumped:
		return isPart
	case back:
		return isNothing
	case !g.balanced:
		if g.jumped {
			return isPart
		}
		return isNothing
	case g.evidence == Pointed:
		return isFunction
	case g.branch && !(g.frame && g.returns):
		return isPart
	case g.jumped: // by jumps that don't depend on anything: calls at functions' ends
		if g.padded || g.returns {
			return isFunction
		}
		return isPart
	case g.returns && g.End-g.Start >= least:
		return isFunction
	}
	return isNothing
}
