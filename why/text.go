package why

import "strings"

// Limit leaves out all causes of a call but the first n; 0 leaves them.
func (r *Report) Limit(n int) {
	for i := range r.Calls {
		if c := &r.Calls[i]; n > 0 && len(c.Causes) > n {
			c.Causes = c.Causes[:n]
		}
	}
}

// Text is the answer in words.
func (r *Report) Text() string {
	var b strings.Builder
	for i := range r.Calls {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(r.Calls[i].Text + "\n")
	}
	for _, n := range r.Notes {
		b.WriteString("\n" + n + "\n")
	}
	return b.String()
}

// Markdown is Text for chats and tickets.
func (r *Report) Markdown() string { return r.Text() }
