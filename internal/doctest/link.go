package doctest

import (
	"regexp"
	"strings"
	"unicode"
)

// A Link leads from a document to somewhere.
type Link struct {
	Line   int // from 1
	Target string
}

var linkForm = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// Links are those of the document's text, in their order. A link's words may go over several lines, its target may not.
func (d *Document) Links() (list []Link) {
	for i, line := range d.Prose() {
		for _, m := range linkForm.FindAllStringSubmatch(line, -1) {
			list = append(list, Link{i + 1, m[1]})
		}
	}
	return list
}

// Anchors are the names by which links lead to the document's headings, as GitHub makes them.
func (d *Document) Anchors() map[string]bool {
	all := map[string]bool{}
	code := map[int]bool{}
	for i := range d.Blocks {
		for n := range d.Blocks[i].Lines {
			code[d.Blocks[i].Line-1+n] = true
		}
	}
	for i, line := range d.Lines {
		text := strings.TrimLeft(line, "#")
		if code[i] || text == line || !strings.HasPrefix(text, " ") {
			continue
		}
		name := anchor(text)
		for all[name] {
			name += "-1" // two headings of the same name are a mistake anyhow
		}
		all[name] = true
	}
	return all
}

// anchor is a heading's name in links: lower case, words joined by hyphens, punctuation left out.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}
