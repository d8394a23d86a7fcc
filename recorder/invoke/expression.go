package invoke

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSyntax is the error of an expression that can't be read. It says what is wrong.
var ErrSyntax = errors.New("not a call such as malloc_trim(0)")

// An Expression is a call as somebody has written it: a function's name and its arguments.
type Expression struct {
	Image    string // the base name of the function's file, or a glob; "" for any
	Function string // as the symbol table has it
	Version  string // of the symbol, "" for the newest
	Literals []Literal
}

// maxExpression bounds an expression's length, in bytes.
const maxExpression = 64 << 10

// Parse reads [IMAGE:]FUNCTION[@VERSION](ARGUMENT, …).
func Parse(text string) (Expression, error) {
	e, err := parse(text)
	if err != nil {
		return Expression{}, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return e, nil
}

func parse(text string) (Expression, error) {
	if len(text) > maxExpression {
		return Expression{}, fmt.Errorf("it has %d bytes, at most %d", len(text), maxExpression)
	}
	text = strings.TrimSpace(text)
	text = strings.TrimSpace(strings.TrimSuffix(text, ";"))
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return Expression{}, errors.New("there is no (")
	}
	if !strings.HasSuffix(text, ")") {
		return Expression{}, errors.New("it doesn't end in )")
	}
	var e Expression
	if err := e.name(strings.TrimSpace(text[:open])); err != nil {
		return Expression{}, err
	}
	parts, err := splitArguments(text[open+1 : len(text)-1])
	if err != nil {
		return Expression{}, err
	}
	for i, part := range parts {
		l, err := parseLiteral(part)
		if err != nil {
			return Expression{}, fmt.Errorf("argument %d: %w", i+1, err)
		}
		e.Literals = append(e.Literals, l)
	}
	return e, nil
}

// name reads what stands before the arguments.
func (e *Expression) name(text string) error {
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		e.Image, text = text[:at], text[at+1:]
		if e.Image == "" {
			return errors.New("the image before : has no name")
		}
	}
	e.Function, e.Version, _ = strings.Cut(text, "@")
	e.Version = strings.TrimPrefix(e.Version, "@")
	if e.Function == "" {
		return errors.New("the function has no name")
	}
	if !isSymbol(e.Function) {
		return fmt.Errorf("%q is no function's name", e.Function)
	}
	return nil
}

// isSymbol says whether a text may be the name of a symbol.
func isSymbol(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '_' || c == '$' || c == '.' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return text != ""
}

// splitArguments splits a list at commas that aren't within quotes.
func splitArguments(text string) ([]string, error) {
	var parts []string
	var quote byte
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == ',':
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	switch {
	case quote == '"':
		return nil, errors.New("a string has no end")
	case quote != 0:
		return nil, errors.New("a character has no end")
	case len(parts) == 0 && strings.TrimSpace(text) == "":
		return nil, nil
	}
	return append(parts, text[from:]), nil
}
