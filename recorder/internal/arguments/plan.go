package arguments

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// Plan is what is recorded of a function, at its entry or at its return.
type Plan struct {
	Capture   *stub.Capture
	Arguments []reel.Argument
	// Omitted are values that can't be recorded, with the reasons.
	Omitted []string
	first   error // why the first can't be
}

// UnknownError says that a function has no argument of that name.
type UnknownError struct {
	Name  string
	Known []string
	Why   error // nil, or why nothing is known of it
	// Registers is how many registers have names.
	Registers int
}

func (e *UnknownError) Error() string {
	switch {
	case e.Why != nil:
		return fmt.Sprintf("no argument %q is known (%v): name registers, arg1 to arg%d or ret", e.Name, e.Why, e.Registers)
	case len(e.Known) == 0:
		return fmt.Sprintf("there is no argument %q: it has none", e.Name)
	}
	return fmt.Sprintf("there is no argument %q: it has %s", e.Name, strings.Join(e.Known, ", "))
}

func (e *UnknownError) Unwrap() error { return e.Why }

// ErrUnplaced is in the chain of errors about values of which it isn't known where they are.
var ErrUnplaced = errors.New("can't be recorded")

// ErrVoid says that a function has no result.
var ErrVoid = errors.New("the function returns nothing")

// resultName is what a result is called: of several, which Go has, it also says which.
func resultName(all []param, i int) string {
	if len(all) == 1 {
		return "return"
	}
	if number, unnamed := strings.CutPrefix(all[i].name, "~r"); unnamed {
		return "return." + number
	}
	return "return." + all[i].name
}

// maxExpanded is how many fields a struct is taken apart into.
const maxExpanded = 16

// CheckEntry takes out what stands in registers that are changed before the event of the entry.
func (p *Plan) CheckEntry(registers uint32, vectors bool) error {
	changed := func(o *stub.Operand) bool {
		switch o.Origin {
		case stub.OriginVector:
			return vectors
		case stub.OriginReg:
			return o.Size != 0 && registers>>o.Reg&1 != 0
		}
		return false
	}
	return p.omit(func(f *stub.Field) string {
		if changed(&f.Value) || changed(&f.Len) {
			return "its register is changed before the first instruction that can be probed"
		}
		return ""
	})
}

// CheckReturn takes out a result that is in memory if the register is changed before the event of the entry that says where.
func (p *Plan) CheckReturn(registers uint32) error {
	const x8 = 8 // of arm64
	if registers>>x8&1 == 0 {
		return nil
	}
	return p.omit(func(f *stub.Field) string {
		if f.IsOfResult() {
			return "the register that says where it is to go is changed before the first instruction that can be probed"
		}
		return ""
	})
}

// OmitMemory takes out what is read from memory, and says why it can't be. An error says that nothing else was asked for.
func (p *Plan) OmitMemory(why string) error {
	return p.omit(func(f *stub.Field) string {
		if f.InRegister() {
			return ""
		}
		return why
	})
}

// omit takes out the values for which why has a reason. An error says that there are no others.
func (p *Plan) omit(why func(*stub.Field) string) error {
	kept := 0
	for i := range p.Arguments {
		f := p.Capture.Fields[i]
		if reason := why(&f); reason != "" {
			p.Omitted = append(p.Omitted, p.Arguments[i].Name+": "+reason)
			continue
		}
		p.Capture.Fields[kept], p.Arguments[kept] = f, p.Arguments[i]
		kept++
	}
	p.Capture.Fields, p.Arguments = p.Capture.Fields[:kept], p.Arguments[:kept]
	if kept == 0 && len(p.Omitted) > 0 {
		return fmt.Errorf("%w: %s", ErrUnplaced, p.Omitted[0])
	}
	return nil
}

// Entry plans what is recorded at the entry: all arguments, if that is wanted, and the values named.
func (s *Signature) Entry(all bool, values []Expression) (p *Plan, err error) {
	return s.plan(s.params, all, values, false)
}

// Return plans what is recorded at the return: the result, if that is wanted, and the values named.
func (s *Signature) Return(all bool, values []Expression) (p *Plan, err error) {
	return s.plan(s.results, all, values, true)
}

func (s *Signature) plan(params []param, all bool, values []Expression, atReturn bool) (*Plan, error) {
	p := &Plan{Capture: &stub.Capture{}}
	err := s.catchPanics(func() error {
		if all {
			if err := p.all(s, params, atReturn); err != nil {
				return err
			}
		}
		for i := range values {
			if slices.ContainsFunc(p.Arguments, func(a reel.Argument) bool { return a.Name == values[i].Text }) {
				continue
			}
			if err := p.named(s, params, &values[i], atReturn); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(p.Arguments) == 0 && len(p.Omitted) > 0 {
		return nil, fmt.Errorf("%w", p.first)
	}
	return p, nil
}

func (s *Signature) catchPanics(do func() error) error {
	name := ""
	if s.d != nil {
		name = s.d.name
	}
	return catchPanics(name, do)
}

// all adds all arguments, or the result. Without debug information these are registers, as integers.
func (p *Plan) all(s *Signature, all []param, atReturn bool) error {
	if s.d == nil {
		var names []string
		for i := range s.abi.integers {
			names = append(names, fmt.Sprintf("arg%d", i+1))
		}
		if atReturn {
			names = []string{"return"}
		}
		for _, n := range names {
			if err := p.named(s, nil, &Expression{Text: n, Name: n, Format: 'x'}, atReturn); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range all {
		a := &all[i]
		name := a.name
		if name == "" || name == "_" || name == ".this" {
			continue
		}
		if atReturn && a.t.Kind == KindVoid {
			return fmt.Errorf("%w: %w", ErrUnplaced, ErrVoid)
		}
		if atReturn {
			name = resultName(all, i)
		}
		if err := p.add(s, name, value{a.t, a.p}, &Expression{}, maxExpanded); err != nil {
			p.Omitted = append(p.Omitted, fmt.Sprintf("%s: %v", name, err))
			p.first = cmp.Or(p.first, fmt.Errorf("%s: %w", name, err))
		}
	}
	return nil
}

// named adds one value.
func (p *Plan) named(s *Signature, all []param, e *Expression, atReturn bool) error {
	v, err := s.resolve(all, e, atReturn)
	if err != nil {
		return err
	}
	if v.t == nil { // a register
		return p.register(v.p.pieces[0].operand, e)
	}
	name := e.Text
	if e.Bytes {
		return p.bytes(s, all, e, v, atReturn)
	}
	if err := p.add(s, name, v, e, maxExpanded); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// register adds one that has no type.
func (p *Plan) register(o stub.Operand, e *Expression) error {
	f := stub.Field{Value: o}
	a := reel.Argument{Name: e.Text, Kind: reel.ArgumentInt}
	if o.Origin == stub.OriginVector {
		a.Kind = reel.ArgumentFloat
	}
	if e.Bytes && e.Length == nil {
		f.Kind, f.Max, a.Kind = stub.FieldBytes, uint16(e.Count), reel.ArgumentBytes
	}
	switch e.Format {
	case 's':
		f.Kind, f.Max, a.Kind = stub.FieldString, DefaultBytes, reel.ArgumentString
	case 'u':
		a.Kind = reel.ArgumentUint
	case 'x':
		a.Kind = reel.ArgumentPointer
	case 'f':
		a.Kind = reel.ArgumentFloat
	}
	a.Name = strings.TrimSuffix(a.Name, ":"+string(e.Format))
	p.put(f, a)
	return nil
}

func (p *Plan) put(f stub.Field, a reel.Argument) {
	p.Capture.Fields = append(p.Capture.Fields, f)
	p.Arguments = append(p.Arguments, a)
}

// value is one on the way from an argument to what is recorded.
type value struct {
	t *Type // nil for a register without a type
	p place
}

// resolve finds a value.
func (s *Signature) resolve(all []param, e *Expression, atReturn bool) (value, error) {
	v, found := value{}, false
	for i := range all {
		if all[i].name == e.Name {
			v, found = value{all[i].t, all[i].p}, true
		}
	}
	if !found && atReturn && (e.Name == "return" || e.Name == "ret") && len(all) > 0 {
		v, found = value{all[0].t, all[0].p}, true
	}
	if !found {
		if o, ok := s.register(e.Name); ok && (atReturn == strings.HasPrefix(e.Name, "ret")) {
			if len(e.Steps) > 0 {
				return v, fmt.Errorf("%s: nothing is known of what %s points to", e.Text, e.Name)
			}
			return value{nil, place{pieces: []piece{{0, 8, o}}}}, nil
		}
		known := s.names()
		if atReturn {
			known = nil
			for _, r := range s.results {
				known = append(known, r.name)
			}
		}
		return v, &UnknownError{Name: e.Name, Known: known, Why: s.why, Registers: len(s.abi.integers)}
	}
	for _, step := range e.Steps {
		var err error
		if v, err = s.d.step(v, step); err != nil {
			return v, fmt.Errorf("%s: %w", e.Text, err)
		}
	}
	return v, nil
}

// step goes from a value to a field or an element of it.
func (d *Debug) step(v value, s Step) (value, error) {
	if v.p.why != "" {
		return v, fmt.Errorf("%w: %s", ErrUnplaced, v.p.why)
	}
	if v.t.Kind == KindReference {
		var err error
		if v, err = d.follow(v, 0); err != nil {
			return v, err
		}
	}
	if s.IsIndex {
		if v.t.Kind == KindPointer {
			return d.follow(v, s.Index)
		}
		elem, err := d.typeAt(v.t.Elem)
		if v.t.Kind != KindArray || err != nil {
			return v, fmt.Errorf("type %q has no elements", v.t.Name)
		}
		if s.Index < 0 || s.Index >= v.t.Count && v.t.Count > 1 {
			return v, fmt.Errorf("type %q has %d elements", v.t.Name, v.t.Count)
		}
		p, err := v.p.part(s.Index*elem.Size, elem.Size)
		return value{elem, p}, err
	}
	if v.t.Kind == KindPointer {
		var err error
		if v, err = d.follow(v, 0); err != nil {
			return v, err
		}
	}
	if v.t.Kind != KindStruct {
		return v, fmt.Errorf("type %q has no field %q", v.t.Name, s.Field)
	}
	m, off, err := d.member(v.t, s.Field, 0)
	if err != nil {
		return v, err
	}
	if m.Bits {
		return v, fmt.Errorf("%q is a bit field, which isn't recorded", s.Field)
	}
	t, err := d.typeAt(m.Type)
	if err != nil {
		return v, err
	}
	p, err := v.p.part(off, t.Size)
	return value{t, p}, err
}

// member finds a field, in anonymous members and base classes, too.
func (d *Debug) member(t *Type, name string, depth int) (Member, int64, error) {
	for _, m := range t.Fields {
		if m.Name == name && !m.Base {
			return m, m.Off, nil
		}
	}
	for _, m := range t.Fields {
		if !m.Base && m.Name != "" || depth > maxChain {
			continue
		}
		if mt, err := d.typeAt(m.Type); err == nil && mt.Kind == KindStruct {
			if found, off, err := d.member(mt, name, depth+1); err == nil {
				return found, m.Off + off, nil
			}
		}
	}
	if t.declared {
		return Member{}, 0, fmt.Errorf("type %q isn't defined where the function is", t.Name)
	}
	var known []string
	for _, m := range t.Fields {
		if m.Name != "" && len(known) < maxExpanded {
			known = append(known, m.Name)
		}
	}
	return Member{}, 0, fmt.Errorf("type %q has no field %q: it has %s", t.Name, name, strings.Join(known, ", "))
}

// follow looks through a pointer, or a reference.
func (d *Debug) follow(v value, index int64) (value, error) {
	t, err := d.typeAt(v.t.Elem)
	if err != nil {
		return v, err
	}
	if v.t.Elem.f == nil || t.Kind == KindVoid {
		return v, fmt.Errorf("type %q points to nothing known", v.t.Name)
	}
	o, err := v.p.pointer()
	if err != nil {
		return v, err
	}
	if off := index * t.Size; off < -maxStack || off > maxStack {
		return v, fmt.Errorf("index %d is too large", index)
	} else {
		o.Off += int32(off)
	}
	return value{t, place{memory: &o}}, nil
}

// pointer is the operand for what is where a pointer leads.
func (p place) pointer() (o stub.Operand, err error) {
	if p.memory != nil {
		o = *p.memory
		if len(o.Path) >= maxSteps {
			return o, fmt.Errorf("more than %d pointers", maxSteps)
		}
		o.Path = append(append([]int32(nil), o.Path...), o.Off)
		o.Off = 0
		return o, nil
	}
	if len(p.pieces) != 1 || p.pieces[0].operand.Origin != stub.OriginReg || p.pieces[0].operand.Shift != 0 {
		return o, fmt.Errorf("%w: it is in no register of its own", ErrUnplaced)
	}
	o = p.pieces[0].operand
	o.Memory = true
	return o, nil
}

// part is the place of size bytes of a value from off on.
func (p place) part(off, size int64) (place, error) {
	if off < 0 || off > maxStack || size < 0 {
		return p, fmt.Errorf("%w: it is too large", ErrUnplaced)
	}
	if p.memory != nil {
		o := *p.memory
		if at := int64(o.Off) + off; at > maxStack {
			return p, fmt.Errorf("%w: it is too large", ErrUnplaced)
		}
		o.Off += int32(off)
		return place{memory: &o}, nil
	}
	var part place
	for _, piece := range p.pieces {
		from, to := max(off, piece.at), min(off+size, piece.at+piece.size)
		if from < to {
			piece.operand.Shift += uint8(from - piece.at)
			piece.at, piece.size = from-off, to-from
			part.pieces = append(part.pieces, piece)
		}
	}
	if len(part.pieces) == 0 {
		return part, fmt.Errorf("%w: it is in no register", ErrUnplaced)
	}
	return part, nil
}

// number is the operand for a value of up to eight bytes.
func (p place) number(size int64, signed bool) (o stub.Operand, err error) {
	switch {
	case p.why != "":
		return o, fmt.Errorf("%w: %s", ErrUnplaced, p.why)
	case size != 1 && size != 2 && size != 4 && size != 8:
		return o, fmt.Errorf("%w: it has %d bytes", ErrUnplaced, size)
	case p.memory != nil:
		o = *p.memory
	case len(p.pieces) == 1:
		o = p.pieces[0].operand
		if int64(o.Shift)+size > 8 {
			return o, fmt.Errorf("%w: it is in two registers", ErrUnplaced)
		}
	default:
		return o, fmt.Errorf("%w: it is in two registers", ErrUnplaced)
	}
	o.Size, o.Signed = uint8(size), signed
	return o, nil
}
