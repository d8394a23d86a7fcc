package export

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/callreel/callreel/reel"
)

const (
	// maxOffs is how many times in which functions were off are exported, maxOffNames how many functions of one by their names.
	maxOffs     = 1000
	maxOffNames = 20
)

// offGroup is a time in which the same functions were off.
type offGroup struct {
	from, to  uint64
	functions []uint32
	estimated uint64
}

// offGroups puts functions together that went off and came back together, in order of time.
func offGroups(f *reel.File) []offGroup {
	list := slices.Clone(f.Offs())
	slices.SortStableFunc(list, func(a, b reel.Off) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	var groups []offGroup
	for _, o := range list {
		if n := len(groups); n == 0 || groups[n-1].from != o.From || groups[n-1].to != o.To {
			groups = append(groups, offGroup{from: o.From, to: o.To})
		}
		g := &groups[len(groups)-1]
		g.functions = append(g.functions, o.Function)
		g.estimated += min(o.Estimated, math.MaxUint64-g.estimated)
	}
	return groups
}

// offs are where functions went off, in order of time, and before that what recording cost. Beyond maxOffs the last one says how many there are
// more.
func (w *walk) offs() (marks []apart) {
	give := func(at int64, n note) { marks = append(marks, apart{at: at, n: n}) }
	if text := Unrecorded(w.f); text != "" {
		give(0, note{kind: noteBudget, off: &offNote{name: "not everything was recorded", text: text}})
	}
	if w.untimed {
		return marks
	}
	groups := offGroups(w.f)
	first, last := w.f.FirstTick(), w.f.LastTick()
	for i := range groups {
		g := &groups[i]
		from := min(max(g.from, first), last)
		to := min(max(g.to, from), last)
		x := &offNote{name: w.offName(g), functions: len(g.functions), estimated: g.estimated}
		n := note{kind: noteOff, nanoseconds: w.f.Clock().Nanoseconds(to - from), off: x}
		if i == maxOffs && len(groups) > maxOffs+1 {
			x.name, x.functions, x.text = fmt.Sprintf("functions went off %d times more", len(groups)-maxOffs), 0, ""
			give(max(0, w.nanoseconds(from)), note{kind: noteOff, off: x})
			return marks
		}
		var names []string
		for _, id := range g.functions[:min(len(g.functions), maxOffNames)] {
			name, _ := w.functionName(id)
			names = append(names, name)
		}
		if x.text = strings.Join(names, ", "); len(g.functions) > maxOffNames {
			x.text += fmt.Sprintf(" and %d more", len(g.functions)-maxOffNames)
		}
		give(max(0, w.nanoseconds(from)), n)
	}
	return marks
}

// offName is what is shown of a time in which functions were off.
func (w *walk) offName(g *offGroup) string {
	name, _ := w.functionName(g.functions[0])
	if n := len(g.functions); n > 1 {
		return fmt.Sprintf("not recorded: %s and %d more", name, n-1)
	}
	return "not recorded: " + name
}

// offNote is what a note says of functions that were off.
type offNote struct {
	name, text string
	functions  int
	estimated  uint64
}

// numbers are those that belong to it.
func (n *note) numbers() (list []struct {
	key   string
	value uint64
}) {
	add := func(key string, v uint64) {
		list = append(list, struct {
			key   string
			value uint64
		}{key, v})
	}
	if n.kind != noteBudget && n.nanoseconds > 0 || n.kind == noteMissing {
		add("duration_ns", n.nanoseconds)
	}
	if n.off != nil && n.off.functions > 0 {
		add("functions_off", uint64(n.off.functions))
	}
	if n.off != nil && n.off.estimated > 0 {
		add("estimated_calls", n.off.estimated)
	}
	return list
}

// textKey is what the text of functions that were off is called.
func (n *note) textKey() string {
	if n.kind == noteBudget {
		return "text"
	}
	return "functions"
}

// Unrecorded says in words what share of a reel's calls isn't recorded for what they cost; it is empty if all are.
func Unrecorded(f *reel.File) string {
	b, budgeted := f.Budget()
	off := uint64(len(f.OffIn(f.FirstTick(), f.LastTick())))
	var parts []string
	if b.Sampled() {
		parts = append(parts, fmt.Sprintf("%s of calls and %s of the time of functions are recorded", percent(b.CallsShare), percent(b.TimeShare)))
	}
	switch off = max(off, b.FunctionsOff); {
	case off == 1:
		parts = append(parts, "1 function was off for some time")
	case off > 1:
		parts = append(parts, fmt.Sprintf("%d functions were off for some time", off))
	}
	if !budgeted || len(parts) == 0 {
		return strings.Join(parts, "; ")
	}
	text := "budget " + percent(b.Wanted)
	if b.HasMeasured() {
		text += ", measured " + percent(b.Measured)
	}
	return text + ": " + strings.Join(parts, "; ")
}

// percent writes a share with up to three digits.
func percent(share float64) string {
	if p := 100 * share; math.Abs(p) < 100 && math.Abs(p) >= 0.001 {
		return strconv.FormatFloat(p, 'g', 3, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}
