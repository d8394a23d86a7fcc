package invoke

import (
	"context"
	"fmt"
	"math"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/arguments"
)

// DebugFiles finds the files with an image's debug information: *object.DebugSearch does.
type DebugFiles interface {
	// Debug opens the debug file of an image.
	Debug(im *object.Image) (*object.Image, error)
	// Alt opens the file that dwz has made, which a debug file names; nil, and no error, if it names none.
	Alt(debug *object.Image) (*object.Image, error)
}

// A signature is what is known of a function's arguments and result.
type signature struct {
	result string // one of Types, "" when it isn't known
	params []arguments.Declaration
	more   bool // it takes others, too
	known  bool // params are all there is
}

// signatureOf reads what debug information says of a function. Where there is none, the C library's functions are known by name.
func signatureOf(ctx context.Context, f found, files DebugFiles) (signature, error) {
	s := signature{result: knownResult(f.image.name(), f.symbol.Name)}
	if f.symbol.Kind == object.IFunc {
		return s, nil // what is known is about the function that chooses
	}
	debug, err := arguments.Open(ctx, f.image.file, files)
	if err != nil {
		return s, nil //nolint:nilerr // then nothing more is known
	}
	defer debug.Close() // only read from
	declared, err := debug.Function(f.symbol.Addr, []string{f.symbol.Name}, false)
	if err != nil {
		return s, nil //nolint:nilerr // the same
	}
	params, more, result, known := declared.Declared()
	if !known {
		return s, nil
	}
	s.params, s.more, s.known = params, more, true
	if result == nil {
		return s, nil
	}
	if result.Kind == arguments.KindStruct || result.Kind == arguments.KindArray {
		return s, fmt.Errorf("%w: %s returns a %s, for which its caller has to provide memory", ErrRefused, f.symbol.Name, nameOf(result))
	}
	s.result = typeName(result, declared.PointsToText(result))
	return s, nil
}

func nameOf(t *arguments.Type) string {
	if t.Name == "" {
		return "structure"
	}
	return t.Name
}

// typeName is the name in Types of a type, "" if there is none.
func typeName(t *arguments.Type, text bool) string {
	bySize := func(signed bool, names map[int64][2]string) string {
		n := names[t.Size]
		if signed {
			return n[0]
		}
		return n[1]
	}
	sizes := map[int64][2]string{1: {"char", "uchar"}, 2: {"short", "ushort"}, 4: {"int", "uint"}, 8: {"long", "ulong"}}
	switch t.Kind {
	case arguments.KindVoid:
		return "void"
	case arguments.KindInt:
		return bySize(true, sizes)
	case arguments.KindUint:
		return bySize(false, sizes)
	case arguments.KindEnum, arguments.KindChar:
		return bySize(t.Signed, sizes)
	case arguments.KindBool:
		return "bool"
	case arguments.KindFloat:
		if t.Size == 4 {
			return "float"
		}
		return "double"
	case arguments.KindPointer, arguments.KindReference:
		if text {
			return "str"
		}
		return "ptr"
	case arguments.KindOther:
		if t.Size == 16 && t.Name == "long double" {
			return "longdouble"
		}
	}
	return ""
}

// passed makes of literals what is passed.
func (s signature) passed(images []*image, literals []Literal) ([]process.Argument, error) {
	if s.known && (len(literals) < len(s.params) || len(literals) > len(s.params) && !s.more) {
		return nil, fmt.Errorf("%w: the function takes %s, not %d", ErrArguments, s.takes(), len(literals))
	}
	out := make([]process.Argument, 0, len(literals))
	for i, l := range literals {
		a, err := passed(images, l)
		if err == nil && i < len(s.params) {
			a, err = fit(a, l, s.params[i])
		}
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out = append(out, a)
	}
	return out, nil
}

func (s signature) takes() string {
	if len(s.params) == 0 {
		return "no arguments"
	}
	text := fmt.Sprintf("%d argument", len(s.params))
	if len(s.params) > 1 {
		text += "s"
	}
	if s.more {
		text += " or more"
	}
	for i, p := range s.params {
		text += map[bool]string{true: " (", false: ", "}[i == 0] + p.Name
	}
	return text + ")"
}

func passed(images []*image, l Literal) (process.Argument, error) {
	switch l.Kind {
	case Text:
		return process.Argument{Data: append(append([]byte{}, l.Text...), 0)}, nil
	case Double, Single:
		return process.Argument{Value: l.Bits, Float: true}, nil
	case Symbol, Offset:
		addr, err := findAddress(images, l)
		return process.Argument{Value: addr}, err
	}
	return process.Argument{Value: l.Bits}, nil
}

// fit makes a number one of the type that the function declares.
func fit(a process.Argument, l Literal, p arguments.Declaration) (process.Argument, error) {
	no := func(what string) (process.Argument, error) {
		return a, fmt.Errorf("%w: %s is %s, which is not what was given", ErrArguments, p.Name, what)
	}
	switch p.Type.Kind {
	case arguments.KindFloat:
		var v float64
		switch l.Kind {
		case Integer:
			v = float64(int64(l.Bits))
		case Double:
			v = math.Float64frombits(l.Bits)
		case Single:
			v = float64(math.Float32frombits(uint32(l.Bits)))
		default:
			return no("a number with a fraction")
		}
		if p.Type.Size == 4 {
			return process.Argument{Value: uint64(math.Float32bits(float32(v))), Float: true}, nil
		}
		return process.Argument{Value: math.Float64bits(v), Float: true}, nil
	case arguments.KindInt, arguments.KindUint, arguments.KindBool, arguments.KindChar, arguments.KindEnum:
		if l.Kind == Double || l.Kind == Single || l.Kind == Text {
			return no("an integer")
		}
	case arguments.KindPointer, arguments.KindReference:
		if l.Kind == Double || l.Kind == Single {
			return no("a pointer")
		}
	case arguments.KindStruct, arguments.KindArray, arguments.KindOther:
		return a, fmt.Errorf("%w: %s is a %s, which can't be passed", ErrArguments, p.Name, nameOf(p.Type))
	}
	return a, nil
}
