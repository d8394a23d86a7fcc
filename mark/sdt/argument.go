package sdt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Argument is one value that a marker has.
type Argument struct {
	// Text is as the note has it, such as "-4@%edi".
	Text string
	// Size is how many bytes the value has: 1, 2, 4 or 8; 0 where the note doesn't say.
	Size   uint8
	Signed bool
	Float  bool
	Operand
	// Length is the register that says how many bytes the string has that the value points to: of a Go string, which no zero ends. No note has
	// that; it is "" for all others.
	Length string
	// Name is what it is called, "" for most: notes don't say.
	Name string
	// Err is why it isn't known where the value is; nil if it is.
	Err error
}

// Place is what kind of place an operand is.
type Place uint8

// The kinds of places.
const (
	Unknown  Place = iota
	Register       // a register's value
	Constant       // a number that is always the same
	Memory         // a value in memory
)

// Operand is where a value is. Registers have the names that the assembler gives them, without %: "edi", "xmm0", "x0".
type Operand struct {
	Place Place
	Reg   string // of Register
	Value int64  // of Constant
	// The address of Memory is that of Symbol, if there is one, plus Disp, Base and Scale times Index. FromPC says that Base is the
	// instruction pointer, so that the address is the symbol's with Disp.
	Base, Index string
	Scale       uint8
	Disp        int64
	Symbol      string
	FromPC      bool
}

// maxArguments bounds the arguments of a marker: sdt.h has macros for up to twelve.
const maxArguments = 64

var (
	errSyntax = errors.New("not understood")
	errSize   = errors.New("has a size that no number has")
	errMany   = fmt.Errorf("more than %d arguments", maxArguments)
)

// ParseArguments reads the arguments of a note. What can't be read has an Err.
func ParseArguments(text string) (list []Argument) {
	for _, one := range split(text) {
		if len(list) == maxArguments {
			return append(list, Argument{Text: one, Err: errMany})
		}
		list = append(list, parseArgument(one))
	}
	return list
}

// split takes arguments apart: at spaces, but for those in brackets, as in -4@[sp, 12].
func split(text string) (list []string) {
	depth, from := 0, -1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[' || c == '(':
			depth++
		case c == ']' || c == ')':
			depth = max(0, depth-1)
		case (c == ' ' || c == '\t') && depth == 0:
			if from >= 0 {
				list = append(list, text[from:i])
			}
			from = -1
			continue
		}
		if from < 0 {
			from = i
		}
	}
	if from >= 0 {
		list = append(list, text[from:])
	}
	return list
}

func parseArgument(text string) Argument {
	a := Argument{Text: text}
	operand := text
	if size, rest, has := strings.Cut(text, "@"); has {
		operand = rest
		a.Err = a.parseSize(size)
	}
	if a.Err == nil {
		a.Operand, a.Err = parseOperand(operand)
	}
	if a.Err != nil {
		a.Operand, a.Err = Operand{}, fmt.Errorf("%s: %w", text, a.Err)
	}
	return a
}

// parseSize reads what is before the @: "8", "-4", "8f".
func (a *Argument) parseSize(text string) error {
	text, a.Signed = strings.CutPrefix(text, "-")
	text, a.Float = strings.CutSuffix(text, "f")
	switch text {
	case "1", "2", "4", "8":
		a.Size = text[0] - '0'
	default:
		return errSize
	}
	if a.Float && a.Size < 4 {
		return errSize
	}
	return nil
}

// parseOperand reads an operand as assemblers for x86 (AT&T syntax), ARM and others write it.
func parseOperand(text string) (o Operand, err error) {
	switch {
	case text == "":
		return o, errSyntax
	case text[0] == '$' || text[0] == '#':
		return parseConstant(text[1:])
	case text[0] == '[':
		return parseBracketed(text)
	case text[0] == '%' && !strings.ContainsAny(text, ":"):
		o.Place, o.Reg = Register, text[1:]
		if !isRegister(o.Reg) {
			return Operand{}, errSyntax
		}
		return o, nil
	case strings.HasSuffix(text, ")"):
		return parseMemory(text)
	case isNumber(text):
		return parseConstant(text)
	case isWord(text) && !strings.ContainsAny(text, "$.@"):
		o.Place, o.Reg = Register, text // of processors whose registers have no sign in front
		return o, nil
	}
	return o, errSyntax
}

func parseConstant(text string) (o Operand, err error) {
	o.Place = Constant
	o.Value, err = number(text)
	if err != nil {
		return Operand{}, err
	}
	return o, nil
}

// number reads a number of 64 bits, with a sign or without.
func number(text string) (int64, error) {
	if v, err := strconv.ParseInt(text, 0, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, errSyntax
	}
	return int64(v), nil
}

func isNumber(text string) bool {
	_, err := number(text)
	return err == nil
}

// parseMemory reads symbol+disp(base,index,scale), each part of which but a base or an index may be missing.
func parseMemory(text string) (o Operand, err error) {
	front, inside, has := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !has || strings.ContainsAny(inside, "()") {
		return o, errSyntax
	}
	o.Place = Memory
	if o.Symbol, o.Disp, err = parseDisplacement(front); err != nil {
		return Operand{}, err
	}
	parts := strings.Split(inside, ",")
	if len(parts) > 3 {
		return Operand{}, errSyntax
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		switch {
		case i == 2:
			n, err := number(part)
			if err != nil || n != 1 && n != 2 && n != 4 && n != 8 || o.Index == "" {
				return Operand{}, errSyntax
			}
			o.Scale = uint8(n)
		case part == "" && i == 0 && len(parts) > 1:
		case !strings.HasPrefix(part, "%") || !isRegister(part[1:]):
			return Operand{}, errSyntax
		case i == 0:
			o.Base = part[1:]
		default:
			o.Index, o.Scale = part[1:], 1
		}
	}
	if o.Base == "rip" {
		o.Base, o.FromPC = "", true
	}
	if o.FromPC && (o.Symbol == "" || o.Index != "") || o.Base == "" && o.Index == "" && !o.FromPC {
		return Operand{}, errSyntax
	}
	return o, nil
}

// parseDisplacement reads what is before the parenthesis: a symbol, a number, or numbers added to one another, and to a symbol, or taken off.
func parseDisplacement(text string) (symbol string, disp int64, err error) {
	for text != "" {
		sign := int64(1)
		for text != "" && (text[0] == '+' || text[0] == '-') {
			if text[0] == '-' {
				sign = -sign
			}
			text = text[1:]
		}
		end := strings.IndexAny(text, "+-")
		if end < 0 {
			end = len(text)
		}
		part := text[:end]
		text = text[end:]
		n, nerr := number(part)
		switch {
		case nerr == nil:
			disp += sign * n
		case symbol == "" && sign > 0 && isWord(part):
			symbol = part
		default:
			return "", 0, errSyntax
		}
	}
	return symbol, disp, nil
}

// parseBracketed reads [base], [base, disp], [base, #disp] and [base, index].
func parseBracketed(text string) (o Operand, err error) {
	inside, ok := strings.CutSuffix(text[1:], "]")
	if !ok || strings.ContainsAny(inside, "[]") {
		return o, errSyntax
	}
	base, second, has := strings.Cut(inside, ",")
	o.Place, o.Base = Memory, strings.TrimSpace(base)
	if !isRegister(o.Base) {
		return Operand{}, errSyntax
	}
	if !has {
		return o, nil
	}
	second = strings.TrimPrefix(strings.TrimSpace(second), "#")
	if o.Disp, err = number(second); err == nil {
		return o, nil
	}
	if !isRegister(second) {
		return Operand{}, errSyntax
	}
	o.Index, o.Scale = second, 1
	return o, nil
}

// isRegister says whether the text may be the name of a register: letters and digits, and st(1).
func isRegister(text string) bool {
	text = strings.TrimSuffix(strings.Replace(text, "(", "", 1), ")")
	if text == "" || len(text) > 8 || text[0] >= '0' && text[0] <= '9' {
		return false
	}
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// isWord says whether the text may be the name of a symbol.
func isWord(text string) bool {
	if text == "" || text[0] >= '0' && text[0] <= '9' {
		return false
	}
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '$', c == '@', c >= 0x80:
		default:
			return false
		}
	}
	return true
}
