package demangle

import "strings"

// A dName reads one name of D (D's ABI, Name Mangling), and writes it as the GNU tools do: with the types of parameters and
// without the type of what is named. Every method that reads says whether it could; what it has written counts only then.
type dName struct {
	budget
	s    string
	at   int
	out  []byte
	last int // a type's back reference must stand before this one, or types could refer in circles
}

// dlangMangled says whether a name begins like D's.
func dlangMangled(s string) bool {
	return len(s) > 2 && s[0] == '_' && s[1] == 'D' && (s[2] >= '0' && s[2] <= '9' || s[2] == 'm' || strings.HasPrefix(s[2:], "__T") || strings.HasPrefix(s[2:], "__U"))
}

// dlangName returns the name, in short without parameters and template arguments, and the steps that it took. What isn't
// D's stays.
func dlangName(s string, short bool) (name string, steps int) {
	if s == "_Dmain" {
		return "D main", 1
	}
	d := &dName{budget: newBudget(s), s: s, last: len(s)}
	if !d.mangled() || d.at != len(s) || d.over || len(d.out) == 0 {
		return s, d.spent
	}
	full := string(d.out)
	if name := withoutBrackets(d.out); short && len(name) > 0 {
		return string(name), d.spent
	}
	return full, d.spent
}

// withoutBrackets leaves out what is in brackets of a name that is whole: parameters and template arguments.
func withoutBrackets(name []byte) []byte {
	depth, n := 0, 0
	for k, c := range name {
		switch {
		case c == '(':
			if depth == 0 && k > 0 && name[k-1] == '!' {
				n--
			}
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0:
			name[n] = c
			n++
		}
	}
	if i := strings.LastIndexByte(string(name[:n]), ' '); i > 0 && isDModifier(string(name[i+1:n])) {
		n = i
	}
	return name[:n]
}

func isDModifier(s string) bool {
	return s == "const" || s == "immutable" || s == "shared" || s == "inout"
}

// write appends to the name.
func (d *dName) write(s string) {
	if !d.spend(1+len(s)>>6) || len(d.out)+len(s) > maxOutput {
		d.over = true
		return
	}
	d.out = append(d.out, s...)
}

// peek is the next byte but k, 0 behind the end.
func (d *dName) peek(k int) byte {
	if d.at+k < len(d.s) {
		return d.s[d.at+k]
	}
	return 0
}

// take passes over a text that comes next.
func (d *dName) take(s string) bool {
	if !strings.HasPrefix(d.s[d.at:], s) {
		return false
	}
	d.at += len(s)
	return true
}

// number reads a decimal number, which something must follow.
func (d *dName) number() (n int, ok bool) {
	from := d.at
	for isDigit(d.peek(0)) {
		if n = 10*n + int(d.peek(0)-'0'); n > 1<<32-1 {
			return 0, false
		}
		d.at++
	}
	return n, d.at > from && d.at < len(d.s)
}

// mangled reads what begins with _D: a qualified name and its type, or Z.
func (d *dName) mangled() bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	if !d.take("_D") || !d.qualified(true) {
		return false
	}
	if d.take("Z") {
		return true
	}
	n := len(d.out)
	ok := d.typ()
	d.out = d.out[:n]
	return ok
}

// qualified reads names with dots between them; methods' modifiers are written behind the parameters if they are to be.
func (d *dName) qualified(modifiers bool) bool {
	for n := 0; ; {
		if d.peek(0) == '0' { // anonymous
			for d.take("0") {
			}
		} else {
			if n++; n > 1 {
				d.write(".")
			}
			if !d.identifier() {
				return false
			}
			if d.peek(0) == 'M' || d.isConvention() {
				d.parameters(modifiers)
			}
		}
		if !d.isSymbolName(d.at) {
			return !d.over
		}
	}
}

// parameters reads those of a function if that is what comes next.
func (d *dName) parameters(modifiers bool) {
	at, n := d.at, len(d.out)
	mods := ""
	if d.take("M") {
		mods = d.modifiers()
	}
	if !d.functionNoReturn(nil, nil) || d.at >= len(d.s) {
		d.at, d.out = at, d.out[:n]
		return
	}
	if modifiers {
		d.write(mods)
	}
}

// isSymbolName says whether an identifier is at a place.
func (d *dName) isSymbolName(at int) bool {
	rest := d.s[min(at, len(d.s)):]
	switch {
	case rest == "":
		return false
	case isDigit(rest[0]), strings.HasPrefix(rest, "__T"), strings.HasPrefix(rest, "__U"):
		return true
	case rest[0] != 'Q':
		return false
	}
	to, _, ok := d.reference(at)
	return ok && isDigit(d.s[to])
}

// reference decodes the back reference at a place: where it points to and where it ends.
func (d *dName) reference(at int) (to, end int, ok bool) {
	back := 0
	for k := at + 1; k < len(d.s) && back <= len(d.s); k++ {
		switch c := d.s[k]; {
		case c >= 'A' && c <= 'Z':
			back = 26*back + int(c-'A')
		case c >= 'a' && c <= 'z' && d.spend(1+(k-at)>>4):
			back = 26*back + int(c-'a')
			return at - back, k + 1, back > 0 && back <= at
		default:
			return 0, 0, false
		}
	}
	d.spend(1 + (len(d.s)-at)>>4)
	return 0, 0, false
}

// identifier reads one name of a qualified one.
func (d *dName) identifier() bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	if d.peek(0) == 'Q' {
		to, end, ok := d.reference(d.at)
		if !ok {
			return false
		}
		d.at = to
		n, ok := d.number()
		ok = ok && n <= len(d.s)-d.at && d.plain(n)
		d.at = end
		return ok
	}
	if d.isTemplate() {
		return d.template(-1)
	}
	n, ok := d.number()
	if !ok || n == 0 || n > len(d.s)-d.at {
		return false
	}
	if n >= 5 && d.isTemplate() {
		return d.template(n)
	}
	if name := d.s[d.at : d.at+n]; n >= 4 && strings.HasPrefix(name, "__S") && strings.Trim(name[3:], "0123456789") == "" {
		d.at += n // a parent that only tells declarations of one name apart
		return d.identifier()
	}
	return d.plain(n)
}

func (d *dName) isTemplate() bool {
	return d.peek(0) == '_' && d.peek(1) == '_' && (d.peek(2) == 'T' || d.peek(2) == 'U')
}

// dSpecial are names that the compiler gives what it makes for the thing before.
var dSpecial = map[string]string{
	"__init": "initializer for ", "__vtbl": "vtable for ", "__Class": "ClassInfo for ",
	"__Interface": "Interface for ", "__ModuleInfo": "ModuleInfo for ",
}

// plain writes the next n bytes as a name.
func (d *dName) plain(n int) bool {
	name := d.s[d.at : d.at+n]
	d.at += n
	switch {
	case name == "__ctor":
		d.write("this")
	case name == "__dtor":
		d.write("~this")
	case name == "__postblit" && d.take("MFZ"):
		d.write("this(this)")
	case dSpecial[name] != "" && d.peek(0) == 'Z':
		if k := len(d.out); k > 0 { // the dot before
			d.out = d.out[:k-1]
		}
		d.spend(len(d.out) >> 6)
		if d.write(dSpecial[name]); !d.over { // it goes before all
			text := len(dSpecial[name])
			copy(d.out[text:], d.out[:len(d.out)-text])
			copy(d.out, dSpecial[name])
		}
	default:
		d.write(name)
	}
	return !d.over
}

// template reads an instance, which is n bytes long unless n is -1.
func (d *dName) template(n int) bool {
	from := d.at
	d.at += len("__T")
	if !d.isSymbolName(d.at) || d.peek(0) == '0' || !d.identifier() {
		return false
	}
	d.write("!(")
	if !d.templateArguments() {
		return false
	}
	d.write(")")
	return n < 0 || d.at-from == n
}

func (d *dName) templateArguments() bool {
	for n := 0; d.at < len(d.s) && !d.over; n++ {
		if d.take("Z") {
			return true
		}
		if n > 0 {
			d.write(", ")
		}
		d.take("H") // specialized
		kind := d.peek(0)
		d.at++
		ok := false
		switch kind {
		case 'S':
			ok = d.symbolArgument()
		case 'T':
			ok = d.typ()
		case 'V':
			ok = d.valueArgument()
		case 'X': // mangled as other languages do
			n, is := d.number()
			if ok = is && n <= len(d.s)-d.at; ok {
				d.write(d.s[d.at : d.at+n])
				d.at += n
			}
		}
		if !ok {
			return false
		}
	}
	return false
}

// valueArgument reads a type and a value of it. The type is written with structs only.
func (d *dName) valueArgument() bool {
	kind := d.peek(0)
	if kind == 'Q' {
		to, _, ok := d.reference(d.at)
		if !ok {
			return false
		}
		kind = d.s[to]
	}
	n := len(d.out)
	if !d.typ() {
		return false
	}
	name := string(d.out[n:])
	d.out = d.out[:n]
	return d.value(name, kind)
}

// symbolArgument reads a symbol. Older compilers put its length before it, and its first name may begin with a digit of its
// own: where the one number ends and the other begins is to be found out.
func (d *dName) symbolArgument() bool {
	if d.peek(0) == '_' && d.peek(1) == 'D' && d.isSymbolName(d.at+2) {
		return d.mangled()
	}
	if d.peek(0) == 'Q' {
		return d.qualified(false)
	}
	length, ok := d.number()
	if !ok || length == 0 {
		return false
	}
	end, written := d.at, len(d.out)
	for from, size := end, length; ; from, size = from-1, size/10 {
		whole := size == 0 // no length at all: from is where the number begins
		d.at = from
		ok := true
		switch {
		case d.isSymbolName(d.at):
			ok = d.qualified(false)
		case strings.HasPrefix(d.s[d.at:], "_D") && d.isSymbolName(d.at+2):
			ok = d.mangled()
		}
		if ok && (whole || d.at-from == size) {
			return true
		}
		if whole || d.over {
			return false
		}
		d.out = d.out[:written]
	}
}
