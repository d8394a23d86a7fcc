package symbolize

import "github.com/callreel/callreel/symbols"

// An answer is what a link address has turned out to be. Its strings may belong to the map.
type answer struct {
	calls  []Call // innermost first; must not be changed
	reason string // why calls is empty
}

// size is about what an answer takes, in bytes.
func (a *answer) size() int {
	n := 128 + len(a.reason)
	for k := range a.calls {
		n += 96 + len(a.calls[k].Function) + len(a.calls[k].File)
	}
	return n
}

// ask asks a map for what is at a link address, which is looked up as it is. The frames are used again.
func ask(m Map, link uint64, frames *[]symbols.Frame) answer {
	found, why := m.Lookup(link, (*frames)[:0])
	*frames = found
	if len(found) == 0 {
		return answer{reason: reasonOf(m, why)}
	}
	calls := make([]Call, len(found))
	for k := range found {
		f := &found[k]
		calls[k] = Call{Function: f.Function(), Linkage: f.Linkage, File: f.File(), Line: f.Line, Inlined: f.Inlined}
	}
	return answer{calls: calls}
}

// reasonOf says in words why a map has found nothing.
func reasonOf(m Map, why symbols.Reason) string {
	if e, ok := m.(interface{ Explain(symbols.Reason) string }); ok {
		return e.Explain(why)
	}
	return why.String()
}
