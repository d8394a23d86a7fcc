package why

import (
	"fmt"
	"strings"
)

// head is the first line of an answer.
func head(a *Answer, several bool) string {
	var b strings.Builder
	verb := "took"
	if a.Unfinished {
		verb = "had not returned after"
	}
	fmt.Fprintf(&b, "%s %s %s", a.Function, verb, took(a.DurationNS))
	switch {
	case a.Peers == 0:
		b.WriteString("; there is no other call of it to hold it against.")
	case a.Others < fewPeers:
		fmt.Fprintf(&b, "; of only %s half took %s.", many(a.Others, "other"), took(a.PeerP50NS))
	default:
		fmt.Fprintf(&b, "; of %s half took %s (p99 %s).", many(a.Others, "other"), took(a.PeerP50NS), took(a.PeerP99NS))
	}
	switch n := len(a.Causes); {
	case a.Peers == 0:
	case n == 0 && a.hiccup != "":
		b.WriteString(" Once it spent " + a.hiccup + ". So short and so seldom that may be the machine's doing: an interrupt, a timer that is late, its host.")
	case n == 0:
		b.WriteString(" Nothing stands out: it lies within the scatter of its peers")
		if a.hint != "" {
			b.WriteString(" (" + a.hint + ")")
		}
		b.WriteString(".")
	case n == 1:
		b.WriteString(" It is slow in one place:")
	default:
		fmt.Fprintf(&b, " It is slow in %d places:", n)
	}
	return b.String()
}

// hinted is the part of a call that the head of its answer names where no cause is given; nil if it names none.
func (a *Answer) hinted() *Cause {
	if len(a.Causes) > 0 || a.hiccup != "" || a.Peers == 0 || len(a.Natural) == 0 || a.Natural[0].ExcessNS < leastExcess {
		return nil
	}
	return &a.Natural[0]
}

// where says in which place a cause is.
func where(out *Answer, c *Cause) string {
	if len(c.Path) == 0 {
		return "in " + out.Function + " itself"
	}
	return "in " + route(c.Path)
}

// causeText puts a cause into words.
func causeText(out *Answer, c *Cause) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s more (%s) %s: ", took(uint64(max(c.ExcessNS, 0))), percent(c.Share), where(out, c))
	each := c.SpentNS / max(1, c.Calls)
	usually := c.PeerSpentNS / max(1, c.PeerCalls)
	switch c.Kind {
	case MoreCalls:
		fmt.Fprintf(&b, "%s instead of %s of usual ones, %s each", many(c.Calls, "call"), number(c.PeerCalls), took(each))
		if usually > 0 && each*2 < usually*3 && usually*2 < each*3 {
			b.WriteString(" as always")
		} else if usually > 0 {
			fmt.Fprintf(&b, " instead of %s", took(usually))
		}
	case NewPath:
		fmt.Fprintf(&b, "where usual ones don't go, %s, %s", many(c.Calls, "call"), took(c.SpentNS))
	case SlowerCalls:
		if c.PeerCalls == 0 && c.PeerSpentNS == 0 {
			fmt.Fprintf(&b, "where most of usual ones don't go, %s, %s", many(c.Calls, "call"), took(c.SpentNS))
		} else if c.Calls == 1 && c.PeerCalls == 1 {
			fmt.Fprintf(&b, "one call of %s instead of %s", took(c.SpentNS), took(c.PeerSpentNS))
		} else {
			fmt.Fprintf(&b, "%s, %s each instead of %s", many(c.Calls, "call"), took(each), took(usually))
		}
	case Self:
		fmt.Fprintf(&b, "its own time is %s instead of %s", took(c.SpentNS), took(c.PeerSpentNS))
	}
	if s := inState(c.State); s != "" {
		b.WriteString("; " + s)
	}
	b.WriteString(c.waits)
	if c.faults != "" {
		b.WriteString("; " + c.faults)
	}
	return b.String()
}

// steps are the lines that say who was waited for.
func steps(c *Cause) (lines []string) {
	if c.WaitsFor == nil {
		return nil
	}
	lead := "until"
	for _, w := range c.Chain {
		who := fmt.Sprintf("thread %d %s", w.TID, w.Thread)
		if w.Goroutine != 0 {
			who = fmt.Sprintf("goroutine %d", w.Goroutine)
		}
		if w.Text != "" {
			who = fmt.Sprintf("thread %d, %s,", w.TID, w.Text)
		}
		line := fmt.Sprintf("%s %s let it go on", lead, who)
		switch {
		case w.same:
			line += ", which waited for the same itself"
		case w.Function != "":
			line += fmt.Sprintf(", which was in %s meanwhile", route(w.Path))
			if s := inState(w.State); s != "" {
				line += ", " + s
			}
		case w.Text == "":
			line += ", which made no recorded calls meanwhile"
		}
		lines = append(lines, line)
		lead = "that one until"
	}
	return lines
}

// so sums the first cause up.
func so(a *Answer) string {
	c := &a.Causes[0]
	text := "so: "
	switch {
	case c.State == "ready":
		text += "it could have run, and others had the processors."
	case c.State == "blocked" && c.Kind == MoreCalls:
		text += "it waits more often, for as long as always."
	case c.State == "blocked" && c.Kind == NewPath:
		text += "waiting where others don't."
	case c.State == "blocked":
		text += "waiting, not working."
	case c.Kind == MoreCalls:
		text += "more work, not slower work" + notWaiting(c)
	case c.Kind == NewPath:
		text += "other work than usual" + notWaiting(c)
	case a.slower > 0:
		text += fmt.Sprintf("the same work, all of it about %.1f times as slow: the machine was slower%s", a.slower, notWaiting(c))
	default:
		text += "slower work, or more of it in one call" + notWaiting(c)
	}
	for _, d := range c.DistinguishedBy {
		text += " " + d.said()
	}
	return text
}

func notWaiting(c *Cause) string {
	if c.State == "cpu" {
		return ", not waiting."
	}
	return "."
}
