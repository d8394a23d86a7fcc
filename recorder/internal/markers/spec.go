package markers

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/mark/sdt"
)

// Options are what was asked for: markers, each as provider:name or a glob of that, with the arguments that are wanted in parentheses, and
// pairs as sdt.ParsePair reads them.
type Options struct{ Markers, Pairs []string }

// Error says that a marker can't be recorded as it was asked for. Flag is the option, Text what it was given.
type Error struct {
	Flag, Text string
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Flag, e.Text, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// spec is one --markers.
type spec struct {
	text, glob string
	all        bool // arguments, as numbers
	args       []wanted
	hit        bool
}

// wanted is an argument that was asked for.
type wanted struct {
	index  int  // from 0
	format byte // one of formats, 0 for a number as the note says
}

// formats are u for unsigned, x for hexadecimal, f for float, s for string.
const formats = "uxfs"

// maxWanted is the highest number of an argument.
const maxWanted = 64

// parse reads what is given as 'GLOB', 'GLOB()' or 'GLOB(arg1:s, arg2)'.
func parse(text string) (*spec, error) {
	s := &spec{text: text}
	front, inside, has := strings.Cut(text, "(")
	s.glob, s.all = strings.TrimSpace(front), !has
	if s.glob == "" {
		return nil, fmt.Errorf("no marker: give provider:name, such as 'postgresql:query__start', or a glob")
	}
	if _, err := path.Match(s.glob, ""); err != nil {
		return nil, fmt.Errorf("%q is no glob", s.glob)
	}
	if !has {
		return s, nil
	}
	inside, closed := strings.CutSuffix(strings.TrimSpace(inside), ")")
	if !closed {
		return nil, fmt.Errorf("a ) is missing")
	}
	if strings.TrimSpace(inside) == "" {
		return s, nil
	}
	for _, part := range strings.Split(inside, ",") {
		name, format, has := strings.Cut(strings.TrimSpace(part), ":")
		w := wanted{}
		if has {
			if len(format) != 1 || !strings.Contains(formats, format) {
				return nil, fmt.Errorf("%q: after the colon comes one of u, x, f and s", part)
			}
			w.format = format[0]
		}
		n, err := strconv.Atoi(strings.TrimPrefix(name, "arg"))
		if err != nil || !strings.HasPrefix(name, "arg") || n < 1 || n > maxWanted {
			return nil, fmt.Errorf("%q: arguments of markers are called arg1, arg2 and so on", name)
		}
		w.index = n - 1
		if slices.ContainsFunc(s.args, func(o wanted) bool { return o.index == w.index }) {
			return nil, fmt.Errorf("arg%d is asked for twice", n)
		}
		s.args = append(s.args, w)
	}
	return s, nil
}

// matches says whether a marker is asked for.
func (s *spec) matches(n *sdt.Note) bool {
	if glob.MatchAny(s.glob, []string{n.Provider + ":" + n.Name}) {
		return true
	}
	return !strings.Contains(s.glob, ":") && glob.MatchAny(s.glob, []string{n.Name})
}
