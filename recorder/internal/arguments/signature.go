package arguments

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"strings"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// Signature is a function's arguments and results, and where they stand.
type Signature struct {
	d       *Debug // nil without debug information: then only registers have names
	abi     *abi
	golang  bool
	rust    bool
	params  []param
	results []param
	more    bool  // it takes arguments that aren't named
	asm     bool  // an assembler has written the debug information, which tells nothing of arguments and results
	why     error // there is no debug information of it, and this is why
}

// param is an argument, or a result, of which Go has several.
type param struct {
	name string
	t    *Type
	p    place
}

const (
	languageGo   = 0x16
	languageRust = 0x1C
	// What GNU as and LLVM write (DWARF 5 §7.12, and version 6).
	languageMipsAssembler = 0x8001
	languageAssembly      = 0x31
	maxParams             = 256
	changedClone          = "the compiler has changed the function's signature"
)

// Function finds the signature of the function that begins at a link address and has these names in the symbol table. Where there is no
// debug information of it, its registers still have names, see Signature.Named.
func (d *Debug) Function(addr uint64, names []string, golang bool) (s *Signature, err error) {
	s = &Signature{golang: golang, abi: hostABI()}
	if d == nil {
		return s, nil
	}
	s.abi = d.abi
	err = catchPanics(d.name, func() error { return d.signature(s, addr, names) })
	if err != nil {
		return &Signature{golang: golang, abi: d.abi, why: err}, nil
	}
	s.d = d
	return s, nil
}

func (d *Debug) signature(s *Signature, addr uint64, names []string) error {
	r, unit, err := d.subprogram(addr)
	if err != nil {
		return err
	}
	refs, list, err := d.chain(r)
	if err != nil {
		return err
	}
	switch lang, _ := number(unit, dwarf.AttrLanguage); lang {
	case languageGo:
		s.golang = true
	case languageRust:
		s.rust = true
	case languageMipsAssembler, languageAssembly:
		s.asm = true
	}
	changed := isClone(names)
	for _, e := range list {
		if cc, ok := number(e, dwarf.AttrCalling); ok && cc != 1 {
			changed = true
		}
	}
	// The whole list is that of the abstract instance, where there is one.
	from := refs[0]
	if len(refs) > 1 && list[0].AttrField(dwarf.AttrAbstractOrigin) != nil {
		from = refs[1]
	}
	if err := d.readParams(s, from); err != nil {
		return err
	}
	if len(s.params)+len(s.results) == 0 && from != refs[0] {
		if err := d.readParams(s, refs[0]); err != nil {
			return err
		}
	}
	if s.golang {
		d.placeGo(s)
		return nil
	}
	result := voidType
	for i, e := range list {
		if e.AttrField(dwarf.AttrType) != nil {
			if result, err = d.typeOf(refs[i].f, e); err != nil {
				return err
			}
			break
		}
	}
	low, _ := list[0].Val(dwarf.AttrLowpc).(uint64)
	if low = cmp.Or(low, addr); isFortran(unit) {
		d.byReference(s, from, refs[0], unit, low)
	}
	s.results = []param{{"return", result, d.abi.result(d, s, result)}}
	d.abi.place(d, s, result)
	if changed {
		d.placeChanged(s, refs[0], unit, low)
	}
	return nil
}

// isClone says whether a function is a copy that the compiler may have changed: gcc tells so by its name.
func isClone(names []string) bool {
	for _, n := range names {
		for _, part := range []string{".isra.", ".constprop.", ".part.", ".ipa_ra", ".specialized."} {
			if strings.Contains(n+".", part) {
				return true
			}
		}
	}
	return false
}

// readParams reads the list of arguments of an entry.
func (d *Debug) readParams(s *Signature, r ref) error {
	return r.children(func(e *dwarf.Entry) error {
		s.more = s.more || e.Tag == dwarf.TagUnspecifiedParameters
		if e.Tag != dwarf.TagFormalParameter || len(s.params)+len(s.results) >= maxParams {
			return nil
		}
		refs, list, err := d.chain(ref{r.f, e.Offset})
		if err != nil {
			return err
		}
		p := param{}
		isResult := false
		for i, c := range list {
			p.name = cmp.Or(p.name, d.text(c, dwarf.AttrName))
			isResult = isResult || flag(c, dwarf.AttrVarParam)
			if p.t == nil && c.AttrField(dwarf.AttrType) != nil {
				if p.t, err = d.typeOf(refs[i].f, c); err != nil {
					return err
				}
			}
		}
		if p.t == nil {
			p.t = &Type{}
		}
		if isResult {
			s.results = append(s.results, p)
		} else {
			s.params = append(s.params, p)
		}
		return nil
	})
}

func (d *Debug) placeGo(s *Signature) {
	in := &goABI{d: d}
	for i := range s.params {
		s.params[i].p = in.value(s.params[i].t)
	}
	out := &goABI{d: d, stack: (in.stack + 7) &^ 7, unknown: in.unknown}
	for i := range s.results {
		s.results[i].p = out.value(s.results[i].t)
	}
	if len(s.results) == 0 {
		s.results = []param{{"return", voidType, place{why: "the function returns nothing"}}}
	}
}

// placeChanged puts arguments of a function whose signature has been changed where DWARF has them at its entry.
func (d *Debug) placeChanged(s *Signature, concrete ref, unit *dwarf.Entry, low uint64) {
	at := map[string]place{}
	err := concrete.children(func(e *dwarf.Entry) error {
		if e.Tag != dwarf.TagFormalParameter {
			return nil
		}
		_, list, err := d.chain(ref{concrete.f, e.Offset})
		if err != nil {
			return err
		}
		name := ""
		for _, c := range list {
			name = cmp.Or(name, d.text(c, dwarf.AttrName))
		}
		if o, ok := d.entryRegister(concrete.f, unit, e, low); ok {
			at[name] = place{pieces: []piece{{0, 8, o}}}
		}
		return nil
	})
	for i := range s.params {
		p := &s.params[i]
		found, ok := at[p.name]
		if !ok || err != nil || p.t.Size > 8 {
			found = place{why: changedClone}
		}
		p.p = found
	}
	for i := range s.results {
		s.results[i].p = place{why: changedClone}
	}
}

// Missing says why there is no debug information of the function, nil if there is.
func (s *Signature) Missing() error {
	switch {
	case s.d != nil:
		return nil
	case s.why != nil:
		return s.why
	}
	return ErrNoDebug
}

// Convention is what says in which registers arguments are where there is no debug information.
func (s *Signature) Convention() string { return s.abi.name }

// names are those of all arguments.
func (s *Signature) names() []string {
	var names []string
	for _, p := range s.params {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// registers are the names of arguments without debug information.
func (s *Signature) register(name string) (stub.Operand, bool) {
	regs, results := s.abi.integers, s.abi.results
	if s.golang {
		regs, results = s.abi.golang, s.abi.golang
	}
	if name == "ret" || name == "return" {
		return stub.Operand{Reg: results[0], Size: 8, Signed: true}, true
	}
	var n int
	if _, err := fmt.Sscanf(name, "arg%d", &n); err == nil && n >= 1 && n <= len(regs) && name == fmt.Sprintf("arg%d", n) {
		return stub.Operand{Reg: regs[n-1], Size: 8, Signed: true}, true
	}
	if _, err := fmt.Sscanf(name, "farg%d", &n); err == nil && n >= 1 && n <= s.abi.vectors && name == fmt.Sprintf("farg%d", n) {
		return stub.Operand{Origin: stub.OriginVector, Vector: uint8(n - 1), Size: 8}, true
	}
	return stub.Operand{}, false
}
