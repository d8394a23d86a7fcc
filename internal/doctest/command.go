package doctest

import (
	"strings"
)

// A Command is a use of callreel that a document shows.
type Command struct {
	Line   int      // from 1
	Text   string   // as it stands there, without a prompt
	Output []string // what is shown below it, in a block of kind console
}

// Commands are those of a block: lines that begin with callreel, or pass something to it. In a block of kind console they stand behind a
// prompt; what follows up to the next prompt is their output.
func (b *Block) Commands() (list []Command) {
	for i, line := range b.Lines {
		text, prompted := strings.CutPrefix(line, "$ ")
		if b.Kind == "console" && !prompted {
			if n := len(list); n > 0 && line != "" {
				list[n-1].Output = append(list[n-1].Output, line)
			}
			continue
		}
		if b.Kind == "console" || len(Uses(text)) > 0 {
			list = append(list, Command{Line: b.Line + i, Text: text})
		}
	}
	return list
}

// Uses are the words behind callreel wherever a shell would run it in a line.
func Uses(line string) (list [][]string) {
	for _, words := range Simple(line) {
		if len(words) > 0 && words[0] == "callreel" {
			list = append(list, words[1:])
		}
	}
	return list
}

// Simple divides a shell's line into its simple commands, and these into words. Quotes are resolved; redirections and comments are left
// out. It knows what documents need of a shell, and no more.
func Simple(line string) (commands [][]string) {
	var words []string
	var word strings.Builder
	inWord, skip := false, false // skip: the next word is a redirection's
	flush := func() {
		if inWord && !skip {
			words = append(words, word.String())
		}
		if inWord {
			skip = false
		}
		word.Reset()
		inWord = false
	}
	end := func() {
		flush()
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words, skip = nil, false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'' || c == '"':
			inWord = true
			for i++; i < len(line) && line[i] != c; i++ {
				word.WriteByte(line[i])
			}
		case c == ' ' || c == '\t' || c == '\n':
			flush()
		case c == '#' && !inWord:
			end()
			return commands
		case c == '|' || c == ';' || c == '&' && word.String() != "2>":
			end()
		case c == '<' || c == '>':
			if word.String() == "2" { // of a descriptor
				word.Reset()
				inWord = false
			}
			flush()
			if i+1 < len(line) && line[i+1] == '&' { // 2>&1
				i += 2
				continue
			}
			skip = true
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	end()
	return commands
}
