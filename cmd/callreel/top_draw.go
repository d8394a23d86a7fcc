package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/live"
)

// How lines are shown. Colours are left out for NO_COLOR; reverse video and bold are none.
const (
	sgrReverse = "\x1b[7m"
	sgrBold    = "\x1b[1m"
	sgrRed     = "\x1b[31m"
	sgrOff     = "\x1b[m"
)

// lines are what the page shows on a screen of that size. They end where the screen does.
func (p *topPage) lines(width, height int) []string {
	out := []string{p.title(), p.second()}
	head, rows := p.table(width)
	fit := max(height-4, 1)
	p.from = max(0, min(p.from, len(rows)-fit))
	out = append(out, sgrReverse+pad(head, width)+sgrOff)
	for _, row := range rows[p.from:min(len(rows), p.from+fit)] {
		out = append(out, clip(row(), width))
	}
	for len(out) < height-1 {
		out = append(out, "")
	}
	out = append(out, clip(p.help(), width))
	out[0], out[1] = sgrBold+clip(out[0], width)+sgrOff, p.mark(clip(out[1], width))
	return out[:min(len(out), height)]
}

// title says whose numbers these are, and of what time.
func (p *topPage) title() string {
	text := fmt.Sprintf("callreel top  %s (%d)", printable(p.name), int(p.f.pid))
	switch {
	case p.snap == nil:
		return text + "  measuring …"
	case p.all:
		text += "  since the beginning: "
	default:
		text += "  last "
	}
	calls := callRate(float64(p.snap.Calls)/max(p.snap.Elapsed.Seconds(), 1e-3)) + " calls/s"
	text += fmt.Sprintf("%.1f s  %s  %s  %s", p.snap.Elapsed.Seconds(), calls,
		things(uint64(len(p.snap.Functions)), "function"), things(uint64(len(p.snap.Threads)), "thread"))
	return text
}

// second is the line for what needs attention.
func (p *topPage) second() string {
	var parts []string
	if p.paused {
		parts = append(parts, "paused")
	}
	if p.typing || p.filter != "" {
		parts = append(parts, p.filterText())
	}
	if s := p.snap; s != nil {
		missing := fmt.Sprintf("%s dropped", count(s.Dropped))
		if s.Dropped > 0 {
			missing += fmt.Sprintf(" (%.1f %%)", 100*float64(s.Dropped)/float64(s.Dropped+s.Calls))
		}
		if p.dropped > s.Dropped {
			missing += ", " + count(p.dropped) + " since the beginning"
		}
		if s.LostExits > 0 {
			missing += ", " + things(s.LostExits, "return") + " lost"
		}
		if s.Ignored > 0 {
			missing += ", " + count(s.Ignored) + " not counted since too many are open"
		}
		parts = append(parts, missing)
	}
	if p.snap != nil {
		if text := topBudget(p.snap, true); text != "" {
			parts = append(parts, text)
		}
	}
	if p.notice != "" {
		parts = append(parts, printable(cut(p.notice)))
	}
	return strings.Join(parts, "   ")
}

// filterText is the end of the filter, so that what is behind it fits.
func (p *topPage) filterText() string {
	const most = 30
	text := []rune(printable(p.filter))
	if n := len(text); n > most {
		text = append([]rune("…"), text[n-most:]...)
	}
	if p.typing {
		text = append(text, '_')
	}
	return "filter: " + string(text)
}

// mark shows the second line so that drops are seen.
func (p *topPage) mark(line string) string {
	if p.dropped == 0 {
		return line
	}
	if p.plain {
		return sgrBold + line + sgrOff
	}
	return sgrBold + sgrRed + line + sgrOff
}

func (p *topPage) help() string {
	if p.typing {
		return "Enter keeps the filter, Esc removes it"
	}
	view := "t threads"
	if p.threads {
		view = "t functions"
	}
	since := "a since the beginning"
	if p.all {
		since = "a last " + p.f.interval.String()
	}
	off := ""
	switch {
	case p.off:
		off = "o functions  "
	case p.f.budget.share > 0:
		off = "o off  "
	}
	return "q ends  c s p m sort  / filter  space pause  " + view + "  " + off + since
}

// table is what is shown below: the columns' heads, and what writes each row that the filter lets through.
func (p *topPage) table(width int) (head string, rows []func() string) {
	if p.threads {
		return p.threadTable()
	}
	if p.off {
		return p.offTable(width)
	}
	head = topHead
	for key, column := range map[string]string{"calls": "  calls/s", "self": "  self", "p99": "  p99", "max": "  max"} {
		if key == p.sort {
			head = strings.Replace(head, column, " >"+column[2:], 1)
		}
	}
	if p.snap == nil {
		return head, nil
	}
	for i := range p.snap.Functions {
		f := &p.snap.Functions[i]
		if p.matches(f.Module + "!" + f.Name) {
			rows = append(rows, func() string { return topRow(f, functionName(f, width-topNameAt)) })
		}
	}
	return head, rows
}

// threadTable lists the threads, the busiest first, and where they are.
func (p *topPage) threadTable() (head string, rows []func() string) {
	head = fmt.Sprintf("%10s  %-16s %12s %7s %10s  %s", "thread", "name", "calls/s", "depth", "for", "in")
	if p.snap == nil {
		return head, nil
	}
	list := slices.Clone(p.snap.Threads)
	slices.SortStableFunc(list, func(a, b live.Thread) int { return cmp.Compare(b.Calls, a.Calls) })
	for i := range list {
		t := &list[i]
		if !p.matches(t.Name + " " + t.In) {
			continue
		}
		rows = append(rows, func() string {
			depth, since, in := "", "", printable(cut(t.In))
			if t.Depth > 0 {
				depth, since = count(uint64(t.Depth)), span(t.For)
			}
			if t.Ended {
				in = "(ended)"
			}
			if t.Dropped > 0 {
				in += fmt.Sprintf("  (%s dropped)", count(t.Dropped))
			}
			return fmt.Sprintf("%10d  %-16s %12s %7s %10s  %s", t.TID, printable(t.Name), callRate(t.PerSecond), depth, since, in)
		})
	}
	return head, rows
}

// matches says whether the filter lets a name through: it has the filter's letters in it, whatever their case.
func (p *topPage) matches(name string) bool {
	return p.filter == "" || strings.Contains(strings.ToLower(name), strings.ToLower(p.filter))
}

// clip cuts a line at the screen's width, in characters: those that take two columns are cut by the terminal.
func clip(line string, width int) string {
	n := 0
	for i := range line {
		if n == width {
			return line[:i]
		}
		n++
	}
	return line
}

// pad fills a line up to the screen's width.
func pad(line string, width int) string {
	line = clip(line, width)
	return line + strings.Repeat(" ", max(0, width-len(line)))
}
