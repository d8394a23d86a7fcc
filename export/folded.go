package export

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Folded writes stacks in the form that Brendan Gregg's flamegraph.pl reads: a line for
// each, the process's name and then all functions from the outermost one on between
// semicolons, a space, and the number of samples. Lines are sorted, no two are equal.
// What is not known stands in brackets.
func Folded(w io.Writer, s *Stacks) error {
	counts := map[string]uint64{}
	var line []byte
	for k := range s.Stacks {
		line = s.folded(line[:0], &s.Stacks[k])
		counts[string(line)] += s.Stacks[k].Count
	}
	b := bufio.NewWriter(w)
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		b.WriteString(text)
		b.WriteByte(' ')
		b.WriteString(strconv.FormatUint(counts[text], 10))
		b.WriteByte('\n')
	}
	return b.Flush()
}

func (s *Stacks) folded(line []byte, stack *Stack) []byte {
	line = append(line, foldable(stack.Process)...)
	next := func(name string) {
		line = append(append(line, ';'), foldable(name)...)
	}
	if stack.Missing != "" {
		next(missingFrame(stack.Missing))
	}
	for k := len(stack.Frames) - 1; k >= 0; k-- {
		l := &s.Locations[stack.Frames[k]]
		for c := len(l.Calls) - 1; c >= 0; c-- {
			next(l.Calls[c].Function)
		}
		if len(l.Calls) == 0 {
			next(s.name(l))
		}
	}
	if stack.Kernel {
		next(kernelFrame)
	}
	return line
}

// foldable takes what has a meaning in the form out of a name, and what terminals obey.
func foldable(name string) string {
	if name == "" {
		return unknownFrame
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "\ufffd"))
}
