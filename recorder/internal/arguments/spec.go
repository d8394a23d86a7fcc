package arguments

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// Spec is what was asked for of some functions.
type Spec struct {
	Function string // a glob
	// Values are expressions; none stands for all arguments, or the result.
	Values []Expression
}

// Expression names a value: an argument, or something that is found by it.
type Expression struct {
	Text  string // as it was given
	Name  string // of the argument
	Steps []Step
	// Bytes is set for a range of bytes at an address: as many as Length, or, if that is nil, Count.
	Bytes  bool
	Length *Expression
	Count  int
	Format byte // of a register without a type: s, d, u, x, f; 0 for none
}

// Step goes from a value to another.
type Step struct {
	Field   string // "" for an index
	Arrow   bool
	Index   int64
	IsIndex bool
}

// DefaultBytes is how many bytes of a string are recorded where nothing else is said.
const DefaultBytes = 64

// MaxBytes bounds how many may be asked for.
const MaxBytes = 256

// ErrSyntax is in the chain of errors of Parse.
var ErrSyntax = errors.New("not understood")

// Parse reads what --args and --ret are given: the name of a function, or a glob, and in parentheses which values.
func Parse(text string) (Spec, error) {
	s := Spec{Function: strings.TrimSpace(text)}
	// The parentheses at the end; names of C++ functions may hold others.
	if !strings.HasSuffix(s.Function, ")") {
		if s.Function == "" {
			return s, fmt.Errorf("%q: %w: a function's name is missing", text, ErrSyntax)
		}
		return s, nil
	}
	depth, open := 0, -1
	for i := len(s.Function) - 1; i >= 0 && open < 0; i-- {
		switch s.Function[i] {
		case ')', ']':
			depth++
		case '(', '[':
			if depth--; depth == 0 {
				open = i
			}
		}
	}
	if open <= 0 {
		return s, fmt.Errorf("%q: %w: its parentheses don't match", text, ErrSyntax)
	}
	list := s.Function[open+1 : len(s.Function)-1]
	s.Function = strings.TrimSpace(s.Function[:open])
	for _, part := range split(list) {
		e, err := ParseExpression(part)
		if err != nil {
			return s, fmt.Errorf("%q: %w", text, err)
		}
		s.Values = append(s.Values, e)
	}
	if len(s.Values) == 0 {
		return s, fmt.Errorf("%q: %w: name the arguments between the parentheses, or leave these away for all", text, ErrSyntax)
	}
	return s, nil
}

// split parts a list at its commas.
func split(list string) []string {
	var parts []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// ParseExpression reads one value's: name, name->field, name.field, name[2], *name, name[:16], name[:size].
func ParseExpression(text string) (Expression, error) {
	text = strings.TrimSpace(text)
	e := Expression{Text: text}
	rest := text
	stars := len(rest) - len(strings.TrimLeft(rest, "*"))
	rest = rest[stars:]
	e.Name, rest = identifier(rest)
	if e.Name == "" {
		return e, fmt.Errorf("%q: %w: an argument's name is missing", text, ErrSyntax)
	}
	for rest != "" {
		var err error
		if rest, err = e.step(rest); err != nil {
			return e, fmt.Errorf("%q: %w", text, err)
		}
	}
	for range stars {
		e.Steps = append(e.Steps, Step{IsIndex: true})
	}
	if len(e.Steps) > maxSteps {
		return e, fmt.Errorf("%q: %w: more than %d steps", text, ErrSyntax, maxSteps)
	}
	return e, nil
}

const maxSteps = 8

// step reads what follows a value.
func (e *Expression) step(rest string) (string, error) {
	if e.Bytes || e.Format != 0 {
		return "", fmt.Errorf("%w: %q behind its end", ErrSyntax, rest)
	}
	switch {
	case strings.HasPrefix(rest, "->"), strings.HasPrefix(rest, "."):
		arrow := rest[0] == '-'
		name, after := identifier(strings.TrimLeft(rest, "->."))
		if name == "" {
			return "", fmt.Errorf("%w: a field's name is missing", ErrSyntax)
		}
		e.Steps = append(e.Steps, Step{Field: name, Arrow: arrow})
		return after, nil
	case strings.HasPrefix(rest, "["):
		inside, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			return "", fmt.Errorf("%w: a bracket is open", ErrSyntax)
		}
		if length, isRange := strings.CutPrefix(inside, ":"); isRange {
			return after, e.rangeOf(strings.TrimSpace(length))
		}
		n, err := strconv.ParseInt(strings.TrimSpace(inside), 0, 32)
		if err != nil {
			return "", fmt.Errorf("%w: %q is no index", ErrSyntax, inside)
		}
		e.Steps = append(e.Steps, Step{IsIndex: true, Index: n})
		return after, nil
	case strings.HasPrefix(rest, ":") && len(rest) == 2 && strings.ContainsRune("sduxf", rune(rest[1])):
		e.Format = rest[1]
		return "", nil
	}
	return "", fmt.Errorf("%w: %q", ErrSyntax, rest)
}

// rangeOf reads the length of a range of bytes.
func (e *Expression) rangeOf(length string) error {
	e.Bytes = true
	if n, err := strconv.Atoi(length); err == nil {
		if n < 1 || n > MaxBytes {
			return fmt.Errorf("%w: a range has 1 to %d bytes", ErrSyntax, MaxBytes)
		}
		e.Count = n
		return nil
	}
	l, err := ParseExpression(length)
	if err == nil && (l.Bytes || l.Format != 0) {
		err = fmt.Errorf("%w: %q is no length", ErrSyntax, length)
	}
	e.Length = &l
	return err
}

// identifier cuts a name off.
func identifier(s string) (name, rest string) {
	i := 0
	for i < len(s) {
		c := s[i]
		letter := c == '_' || c == '~' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
		if !letter && (c < '0' || c > '9' || i == 0) {
			break
		}
		i++
	}
	return s[:i], s[i:]
}

// Condition is what was asked for of calls: Value compared with Literal, an integer, a character, the name of an enum's value, true, false or
// null.
type Condition struct {
	Text       string
	Value      Expression
	Comparison stub.Comparison
	Literal    string
}

var comparisons = []struct {
	text string
	is   stub.Comparison
}{
	{"==", stub.Equal}, {"!=", stub.NotEqual}, {"<=", stub.LessEqual}, {">=", stub.GreaterEqual}, {"<", stub.Less}, {">", stub.Greater},
}

// ParseConditions reads what --if is given: "F: size > 4096 && flags == 0", or without F, which is then "".
func ParseConditions(text string) (function string, list []Condition, err error) {
	rest := text
	if f, after, ok := strings.Cut(text, ": "); ok {
		function, rest = strings.TrimSpace(f), after
	}
	for part := range strings.SplitSeq(rest, "&&") {
		c, err := parseCondition(strings.TrimSpace(part))
		if err != nil {
			return function, nil, fmt.Errorf("%q: %w", text, err)
		}
		list = append(list, c)
	}
	return function, list, nil
}

func parseCondition(text string) (c Condition, err error) {
	c.Text = text
	for i := range text {
		if strings.HasPrefix(text[i:], "->") || i > 0 && text[i-1] == '-' {
			continue // c->argc
		}
		for _, k := range comparisons {
			literal, ok := strings.CutPrefix(text[i:], k.text)
			if !ok {
				continue
			}
			c.Comparison, c.Literal = k.is, strings.TrimSpace(literal)
			c.Value, err = ParseExpression(text[:i])
			if err == nil && c.Literal == "" {
				err = fmt.Errorf("%w: nothing to compare with", ErrSyntax)
			}
			return c, err
		}
	}
	return c, fmt.Errorf("%w: it compares nothing; use ==, !=, <, <=, > or >=", ErrSyntax)
}
