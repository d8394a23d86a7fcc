package manual

import "strings"

// escape puts a backslash before each character that Markdown would take for more than itself.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_{}[]<>#|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// markdown turns the text of --help into Markdown: paragraphs stay, and indented lines stay as they are.
func markdown(text string) string {
	const fence = "```\n"
	var b strings.Builder
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if indented := strings.HasPrefix(line, "  "); indented != verbatim && line != "" {
			if !verbatim {
				b.WriteByte('\n')
			}
			b.WriteString(fence)
			if verbatim {
				b.WriteByte('\n')
			}
			verbatim = indented
		}
		if !verbatim {
			line = escape(line)
		}
		b.WriteString(line + "\n")
	}
	if verbatim {
		b.WriteString(fence)
	}
	return b.String()
}
