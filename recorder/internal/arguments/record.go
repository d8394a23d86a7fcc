package arguments

import (
	"fmt"
	"strings"

	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// add adds a value as its type is: numbers as they are, strings as their bytes, structs field by field. space is how many fields there may
// be.
func (p *Plan) add(s *Signature, name string, v value, e *Expression, space int) error {
	if v.p.why != "" {
		return fmt.Errorf("%w: %s", ErrUnplaced, v.p.why)
	}
	a := reel.Argument{Name: name, Type: s.d.nameOf(v.t)}
	if e.Format != 0 {
		a.Name = strings.TrimSuffix(name, ":"+string(e.Format))
		return p.formatted(a, v, e.Format)
	}
	switch v.t.Kind {
	case KindReference:
		inner, err := s.d.follow(v, 0)
		if err != nil || inner.t.Kind == KindUnknown {
			return p.number(a, reel.ArgumentPointer, v, false)
		}
		if inner.t.Kind == KindStruct && !s.isString(inner.t) {
			return p.number(a, reel.ArgumentPointer, v, false)
		}
		return p.add(s, name, inner, e, space)
	case KindInt:
		return p.number(a, reel.ArgumentInt, v, true)
	case KindUint:
		return p.number(a, reel.ArgumentUint, v, false)
	case KindBool:
		return p.number(a, reel.ArgumentBool, v, false)
	case KindChar:
		return p.number(a, reel.ArgumentChar, v, false)
	case KindEnum:
		a.Names = v.t.Enum
		return p.number(a, reel.ArgumentEnum, v, v.t.Signed)
	case KindFloat:
		if v.t.Size == 4 {
			return p.number(a, reel.ArgumentFloat32, v, false)
		}
		return p.number(a, reel.ArgumentFloat, v, false)
	case KindPointer:
		if elem, err := s.d.typeAt(v.t.Elem); err == nil && elem.Kind == KindChar && !s.golang {
			o, err := v.p.number(8, false)
			if err != nil {
				return err
			}
			a.Kind = reel.ArgumentString
			p.put(stub.Field{Kind: stub.FieldString, Value: o, Max: DefaultBytes}, a)
			return nil
		}
		return p.number(a, reel.ArgumentPointer, v, false)
	case KindStruct:
		if s.isString(v.t) {
			return p.text(s, a, v)
		}
		return p.fields(s, name, v, e, space)
	case KindArray:
		return p.array(s, a, v)
	case KindVoid:
		return fmt.Errorf("%w: it has no value", ErrUnplaced)
	}
	return fmt.Errorf("%w: values of type %q", ErrUnplaced, v.t.Name)
}

// formatted adds a number, or what a pointer leads to, as it was asked for.
func (p *Plan) formatted(a reel.Argument, v value, format byte) error {
	switch v.t.Kind {
	case KindInt, KindUint, KindChar, KindBool, KindEnum, KindPointer:
	default:
		return fmt.Errorf("%w: values of type %q with :%c", ErrUnplaced, a.Type, format)
	}
	switch format {
	case 's':
		o, err := v.p.number(8, false)
		if err == nil && v.t.Kind != KindPointer {
			err = fmt.Errorf("%w: type %q is no pointer", ErrUnplaced, a.Type)
		}
		if err != nil {
			return err
		}
		a.Kind = reel.ArgumentString
		p.put(stub.Field{Kind: stub.FieldString, Value: o, Max: DefaultBytes}, a)
		return nil
	case 'd':
		return p.number(a, reel.ArgumentInt, v, true)
	case 'u':
		return p.number(a, reel.ArgumentUint, v, false)
	case 'x':
		return p.number(a, reel.ArgumentPointer, v, false)
	}
	return fmt.Errorf("%w: values of type %q with :%c", ErrUnplaced, a.Type, format)
}

// number adds one.
func (p *Plan) number(a reel.Argument, kind reel.ArgumentKind, v value, signed bool) error {
	o, err := v.p.number(v.t.Size, signed)
	if err != nil {
		return err
	}
	a.Kind = kind
	p.put(stub.Field{Value: o}, a)
	return nil
}

// array adds one of characters, up to a zero, or the bytes of another.
func (p *Plan) array(s *Signature, a reel.Argument, v value) error {
	elem, err := s.d.typeAt(v.t.Elem)
	if err != nil {
		return err
	}
	if v.p.memory == nil {
		return fmt.Errorf("%w: an array in registers", ErrUnplaced)
	}
	o := address(v.p)
	n := min(v.t.Size, DefaultBytes)
	if v.t.Size == 0 {
		n = DefaultBytes // a flexible one at a struct's end
	}
	f := stub.Field{Kind: stub.FieldString, Value: o, Max: uint16(n)}
	a.Kind = reel.ArgumentString
	if elem.Kind != KindChar {
		f.Kind, a.Kind = stub.FieldBytes, reel.ArgumentBytes
	}
	p.put(f, a)
	return nil
}

// address is the operand whose value is where something in memory begins.
func address(p place) stub.Operand {
	o := *p.memory
	o.Memory, o.Size = false, 8
	return o
}

// fields adds those of a struct.
func (p *Plan) fields(s *Signature, name string, v value, e *Expression, space int) error {
	if s.d.depth++; s.d.depth > maxChain {
		s.d.depth--
		return fmt.Errorf("%w: values of type %q", ErrUnplaced, v.t.Name)
	}
	defer func() { s.d.depth-- }()
	if len(v.t.Fields) == 0 || v.t.union {
		return fmt.Errorf("%w: values of type %q", ErrUnplaced, v.t.Name)
	}
	added := len(p.Arguments)
	for _, m := range v.t.Fields {
		if m.Bits || len(p.Arguments)-added >= space {
			continue
		}
		t, err := s.d.typeAt(m.Type)
		if err != nil {
			return err
		}
		part, err := v.p.part(m.Off, t.Size)
		if err != nil {
			continue
		}
		inside := name + "." + m.Name
		if m.Base || m.Name == "" { // its fields are named as this one's own
			if inside = name; t.Kind != KindStruct {
				continue
			}
		}
		_ = p.add(s, inside, value{t, part}, e, space-(len(p.Arguments)-added)) // what can't be recorded is left out
	}
	if len(p.Arguments) == added {
		return fmt.Errorf("%w: values of type %q", ErrUnplaced, v.t.Name)
	}
	return nil
}

// isString says whether a struct is one of those that hold text: C++'s strings, of libstdc++, and string views; Go's strings, and slices of
// bytes.
func (s *Signature) isString(t *Type) bool {
	if s.golang {
		return t.Name == "string" && s.d.has(t, "str", "len") || t.Name == "[]uint8" && s.d.has(t, "array", "len") || s.d.goText(t)
	}
	return cxxString(t) || cxxView(t)
}

// goText says whether a type of another name is a string.
func (d *Debug) goText(t *Type) bool {
	return len(t.Fields) == 2 && t.Fields[0].Name == "str" && t.Fields[1].Name == "len"
}

func cxxString(t *Type) bool {
	return strings.HasPrefix(t.Name, "basic_string<char,") || t.Name == "string" || t.Name == "basic_string<char>"
}

func cxxView(t *Type) bool {
	return strings.HasPrefix(t.Name, "basic_string_view<char") || t.Name == "string_view"
}

// has says whether a struct has these fields.
func (d *Debug) has(t *Type, names ...string) bool {
	for _, n := range names {
		if _, _, err := d.member(t, n, 0); err != nil {
			return false
		}
	}
	return true
}

// text adds a string that knows its length.
func (p *Plan) text(s *Signature, a reel.Argument, v value) error {
	data, length := int64(0), int64(8)
	switch {
	case s.golang:
	case cxxView(v.t):
		if s.d.has(v.t, "_M_str") { // libstdc++: length first
			data, length = 8, 0
		} else if !s.d.has(v.t, "__data_") && !s.d.has(v.t, "__data") {
			return fmt.Errorf("%w: a string view of a kind that isn't known", ErrUnplaced)
		}
	case v.t.declared || len(v.t.Fields) == 0:
		if s.d.libcp {
			return fmt.Errorf("%w: strings of libc++", ErrUnplaced)
		}
	case !s.d.has(v.t, "_M_dataplus", "_M_string_length"):
		return fmt.Errorf("%w: a string of a kind that isn't known", ErrUnplaced)
	}
	at, err := v.p.part(data, 8)
	if err != nil {
		return err
	}
	n, err := v.p.part(length, 8)
	if err != nil {
		return err
	}
	f := stub.Field{Kind: stub.FieldBytes, Max: DefaultBytes}
	if f.Value, err = at.number(8, false); err != nil {
		return err
	}
	if f.Len, err = n.number(8, true); err != nil {
		return err
	}
	a.Kind = reel.ArgumentString
	if s.golang && v.t.Name == "[]uint8" {
		a.Kind = reel.ArgumentBytes
	}
	p.put(f, a)
	return nil
}

// bytes adds a range of bytes.
func (p *Plan) bytes(s *Signature, all []param, e *Expression, v value, atReturn bool) error {
	f := stub.Field{Kind: stub.FieldBytes, Max: uint16(e.Count)}
	a := reel.Argument{Name: e.Text, Type: s.d.nameOf(v.t), Kind: reel.ArgumentBytes}
	var err error
	switch {
	case v.p.why != "":
		return fmt.Errorf("%s: %w: %s", e.Text, ErrUnplaced, v.p.why)
	case v.t.Kind == KindPointer:
		f.Value, err = v.p.number(8, false)
	case v.t.Kind == KindArray && v.p.memory != nil:
		f.Value = address(v.p)
	default:
		return fmt.Errorf("%s: type %q is no pointer", e.Text, v.t.Name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Text, err)
	}
	if elem, err := s.d.typeAt(v.t.Elem); err == nil && elem.Kind == KindChar {
		a.Kind = reel.ArgumentString
	}
	if e.Length != nil {
		n, err := s.resolve(all, e.Length, atReturn)
		if err != nil {
			return err
		}
		if n.t.Kind != KindInt && n.t.Kind != KindUint {
			return fmt.Errorf("%s: %s is no integer", e.Text, e.Length.Text)
		}
		f.Max = DefaultBytes
		if f.Len, err = n.p.number(n.t.Size, n.t.Kind == KindInt); err != nil {
			return fmt.Errorf("%s: %w", e.Text, err)
		}
	}
	p.put(f, a)
	return nil
}

// nameOf is how a type is spelled.
func (d *Debug) nameOf(t *Type) string {
	stars := ""
	for range maxSteps {
		if t.Name != "" {
			return t.Name + stars
		}
		switch t.Kind {
		case KindPointer:
			stars = "*" + stars
		case KindReference:
			stars = "&" + stars
		case KindArray:
			stars = fmt.Sprintf("[%d]", t.Count) + stars
		default:
			return stars
		}
		inner, err := d.typeAt(t.Elem)
		if err != nil {
			return stars
		}
		t = inner
	}
	return stars
}
