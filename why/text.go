package why

import (
	"fmt"
	"strings"
)

// Limit leaves out all causes of a call but the first n; 0 leaves them.
func (r *Report) Limit(n int) {
	for i := range r.Calls {
		if c := &r.Calls[i]; n > 0 && len(c.Causes) > n {
			c.Causes = c.Causes[:n]
		}
	}
}

// mostLines is how many lines an answer has at most.
const mostLines = 20

// lines are an answer: a head, what follows from it, and what can't be known.
type lines struct {
	head  string
	list  []line
	notes []string
}

// line is a cause, or a step of one.
type line struct {
	text string
	step bool
}

// answer is what is said of a group of calls.
func (r *Report) answer(group []int) lines {
	a := &r.Calls[group[0]]
	l := lines{head: head(a, len(group) > 1), notes: a.Notes}
	for i := range a.Causes {
		c := &a.Causes[i]
		l.list = append(l.list, line{text: c.Text})
		for _, s := range steps(c) {
			l.list = append(l.list, line{text: s, step: true})
		}
	}
	if len(a.Causes) > 0 {
		l.list = append(l.list, line{text: so(a)})
	} else if c := a.hinted(); c != nil { // whoever it waited for is known, however usual that is
		for _, s := range steps(c) {
			l.list = append(l.list, line{text: s})
		}
	}
	if n := len(group) - 1; n > 0 {
		var others []string
		for _, i := range group[1:min(len(group), 7)] {
			o := &r.Calls[i]
			others = append(others, fmt.Sprintf("%s (thread %d, %s after the start)", took(o.DurationNS), o.TID, took(o.StartNS)))
		}
		if n > len(others) {
			others = append(others, fmt.Sprintf("%d more", n-len(others)))
		}
		same := "So are"
		if len(a.Causes) == 0 {
			same = "Nor does it of"
			if a.Peers == 0 {
				same = "Nor is there for"
			}
		}
		l.list = append(l.list, line{text: same + " those of " + strings.Join(others, ", ") + "."})
	}
	// What is left out is in the JSON.
	if most := mostLines - 1 - min(len(l.notes), 4); len(l.list) > most {
		l.list = append(l.list[:most-1], line{text: fmt.Sprintf("… and %d lines more", len(l.list)-most+1)})
	}
	l.notes = l.notes[:min(len(l.notes), 4)]
	return l
}

// Text is the answer in words: a paragraph for each group of calls that are slow for the same cause.
func (r *Report) Text() string {
	var b strings.Builder
	for i, group := range r.Groups {
		if i > 0 {
			b.WriteString("\n")
		}
		l := r.answer(group)
		b.WriteString(l.head + "\n")
		for _, x := range l.list {
			if x.step {
				b.WriteString("  ")
			}
			b.WriteString("  " + x.text + "\n")
		}
		for _, n := range l.notes {
			b.WriteString("  " + n + "\n")
		}
	}
	for i, n := range r.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(n + "\n")
	}
	return b.String()
}

// Markdown is Text for chats and tickets.
func (r *Report) Markdown() string {
	var b strings.Builder
	for i, group := range r.Groups {
		if i > 0 {
			b.WriteString("\n")
		}
		l := r.answer(group)
		b.WriteString("**" + escaped(l.head) + "**\n\n")
		for _, x := range l.list {
			if x.step {
				b.WriteString("  ")
			}
			b.WriteString("- " + escaped(x.text) + "\n")
		}
		for _, n := range l.notes {
			b.WriteString("\n*" + escaped(n) + "*\n")
		}
	}
	for _, n := range r.Notes {
		b.WriteString("\n*" + escaped(n) + "*\n")
	}
	return b.String()
}

// escaped takes the meaning from what Markdown would obey: names come from programs.
func escaped(text string) string {
	return strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "[", "\\[", "#", "\\#", "|", "\\|", "\n", " ").Replace(text)
}
