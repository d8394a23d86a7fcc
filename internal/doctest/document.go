package doctest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Document is one Markdown file.
type Document struct {
	Path   string   // below the root, with slashes
	Lines  []string // without their ends
	Blocks []Block
	Spans  []Span
}

// A Block is a piece of code between fences, or indented by four spaces.
type Block struct {
	Kind  string   // the first word behind the opening fence; "indented" where there is none
	Notes []string // the other words
	Line  int      // of Lines[0], from 1
	Lines []string
}

// A Span is code inside a line of text.
type Span struct {
	Line int // from 1
	Text string
}

// Has says whether a word stands behind the fence's first.
func (b *Block) Has(note string) bool {
	for _, n := range b.Notes {
		if n == note {
			return true
		}
	}
	return false
}

// Documents reads all documents below root, but those that were installed there.
func Documents(root string) ([]*Document, error) {
	var all []*Document
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, Parse(filepath.ToSlash(short), string(text)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("doctest: reading the documents: %w", err)
	}
	return all, nil
}

// Parse reads a document's text.
func Parse(path, text string) *Document {
	d := &Document{Path: path, Lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	const fence = "```"
	var open *Block
	blank := true // an indented block begins behind an empty line
	for i, line := range d.Lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case open != nil && open.Kind != "indented":
			if trimmed == fence {
				d.Blocks, open = append(d.Blocks, *open), nil
			} else {
				open.Lines = append(open.Lines, line)
			}
			continue
		case strings.HasPrefix(trimmed, fence):
			if open != nil {
				d.Blocks = append(d.Blocks, *open)
			}
			words := append(strings.Fields(strings.TrimLeft(trimmed, "`")), "")
			open = &Block{Kind: words[0], Notes: words[1:], Line: i + 2}
			continue
		case open != nil && !strings.HasPrefix(line, "    "):
			d.Blocks, open = append(d.Blocks, *open), nil
		case open != nil:
			open.Lines = append(open.Lines, line[4:])
			continue
		case blank && strings.HasPrefix(line, "    "):
			open = &Block{Kind: "indented", Line: i + 1, Lines: []string{line[4:]}}
			continue
		}
		blank = trimmed == ""
		d.Spans = append(d.Spans, spans(i+1, line)...)
	}
	if open != nil {
		d.Blocks = append(d.Blocks, *open)
	}
	return d
}

// spans are the pieces of a line between backquotes.
func spans(number int, line string) (list []Span) {
	parts := strings.Split(line, "`")
	for i := 1; i+1 < len(parts); i += 2 {
		list = append(list, Span{number, parts[i]})
	}
	return list
}

// Prose is the document's text with nothing left of code: its lines are where they were.
func (d *Document) Prose() []string {
	lines := append([]string(nil), d.Lines...)
	for i := range d.Blocks {
		b := &d.Blocks[i]
		for n := range b.Lines {
			lines[b.Line-1+n] = ""
		}
	}
	for i, line := range lines {
		parts := strings.Split(line, "`")
		for k := 1; k+1 < len(parts); k += 2 {
			parts[k] = ""
		}
		lines[i] = strings.Join(parts, "`")
	}
	return lines
}
