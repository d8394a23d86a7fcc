package demangle

import (
	"strconv"
	"strings"
)

// dBasic are D's basic types.
var dBasic = map[byte]string{
	'n': "typeof(null)", 'v': "void", 'g': "byte", 'h': "ubyte", 's': "short", 't': "ushort", 'i': "int", 'k': "uint", 'l': "long",
	'm': "ulong", 'f': "float", 'd': "double", 'e': "real", 'o': "ifloat", 'p': "idouble", 'j': "ireal", 'q': "cfloat",
	'r': "cdouble", 'c': "creal", 'b': "bool", 'a': "char", 'u': "wchar", 'w': "dchar",
}

// dConventions are how functions are called.
var dConventions = map[byte]string{
	'F': "", 'U': "extern(C) ", 'W': "extern(Windows) ", 'V': "extern(Pascal) ", 'R': "extern(C++) ", 'Y': "extern(Objective-C) ",
}

func (d *dName) isConvention() bool {
	_, ok := dConventions[d.peek(0)]
	return ok
}

// wrapped reads a type and writes it between two texts.
func (d *dName) wrapped(before, after string) bool {
	d.write(before)
	ok := d.typ()
	d.write(after)
	return ok
}

// typ reads a type.
func (d *dName) typ() bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	c := d.peek(0)
	if c != 'Q' && !d.isConvention() {
		d.at++
	}
	switch c {
	case 'O':
		return d.wrapped("shared(", ")")
	case 'x':
		return d.wrapped("const(", ")")
	case 'y':
		return d.wrapped("immutable(", ")")
	case 'N':
		c := d.peek(0)
		d.at++
		switch c {
		case 'g':
			return d.wrapped("inout(", ")")
		case 'h':
			return d.wrapped("__vector(", ")")
		case 'n':
			d.write("typeof(*null)")
			return true
		}
		return false
	case 'A':
		return d.wrapped("", "[]")
	case 'G':
		from := d.at
		for isDigit(d.peek(0)) {
			d.at++
		}
		return d.wrapped("", "["+d.s[from:d.at]+"]")
	case 'H':
		n := len(d.out)
		if !d.typ() {
			return false
		}
		key := string(d.out[n:])
		d.out = d.out[:n]
		return d.wrapped("", "["+key+"]")
	case 'P':
		if !d.isConvention() {
			return d.wrapped("", "*")
		}
		fallthrough
	case 'F', 'U', 'W', 'V', 'R', 'Y':
		ok := d.function()
		d.write("function")
		return ok
	case 'C', 'S', 'E', 'T':
		return d.qualified(false)
	case 'D':
		mods := d.modifiers()
		ok := false
		if d.peek(0) == 'Q' {
			ok = d.typeReference(d.function)
		} else {
			ok = d.function()
		}
		d.write("delegate")
		d.write(mods)
		return ok
	case 'B':
		return d.tuple()
	case 'z':
		c := d.peek(0)
		d.at++
		if c == 'i' {
			d.write("cent")
		} else {
			d.write("ucent")
		}
		return c == 'i' || c == 'k'
	case 'Q':
		return d.typeReference(d.typ)
	}
	name, ok := dBasic[c]
	d.write(name)
	return ok
}

// typeReference reads a back reference to what read reads.
func (d *dName) typeReference(read func() bool) bool {
	if d.at >= d.last {
		return false
	}
	to, end, ok := d.reference(d.at)
	if !ok {
		return false
	}
	saved := d.last
	d.last, d.at = d.at, to
	ok = read()
	d.last, d.at = saved, end
	return ok
}

func (d *dName) tuple() bool {
	n, ok := d.number()
	if !ok {
		return false
	}
	d.write("Tuple!(")
	for k := range n {
		if k > 0 {
			d.write(", ")
		}
		if !d.typ() || d.over {
			return false
		}
	}
	d.write(")")
	return true
}

// modifiers reads those of a method, or of what a delegate has for this.
func (d *dName) modifiers() string {
	mods := ""
	for {
		switch {
		case d.take("x"):
			return mods + " const"
		case d.take("y"):
			return mods + " immutable"
		case d.take("O"):
			mods += " shared"
		case d.peek(0) == 'N' && d.peek(1) == 'g':
			d.at += 2
			mods += " inout"
		default:
			return mods
		}
		if !d.spend(1) {
			return ""
		}
	}
}

// function reads a function's type. Mangled are convention, attributes, parameters and result; written is the result
// before the parameters, and the attributes behind.
func (d *dName) function() bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	from := len(d.out)
	convention, attributes := "", ""
	if !d.functionNoReturn(&convention, &attributes) {
		return false
	}
	parameters := string(d.out[from:])
	d.out = d.out[:from]
	d.write(convention)
	ok := d.typ()
	d.write(parameters)
	d.write(" ")
	d.write(attributes)
	return ok
}

// dAttributes are those of functions, by the letter behind N.
var dAttributes = map[byte]string{
	'a': "pure ", 'b': "nothrow ", 'c': "ref ", 'd': "@property ", 'e': "@trusted ", 'f': "@safe ", 'i': "@nogc ", 'j': "return ",
	'l': "scope ", 'm': "@live ",
}

// functionNoReturn reads a function's type but for the result, and writes the parameters in brackets.
func (d *dName) functionNoReturn(convention, attributes *string) bool {
	text, ok := dConventions[d.peek(0)]
	if !ok {
		return false
	}
	d.at++
	if convention != nil {
		*convention = text
	}
	all := ""
	for d.peek(0) == 'N' && d.spend(1) {
		text, ok := dAttributes[d.peek(1)]
		if !ok {
			if c := d.peek(1); c != 'g' && c != 'h' && c != 'k' && c != 'n' { // which a parameter begins with
				return false
			}
			break
		}
		all += text
		d.at += 2
	}
	if attributes != nil {
		*attributes = all
	}
	d.write("(")
	if !d.functionParameters() {
		return false
	}
	d.write(")")
	return true
}

func (d *dName) functionParameters() bool {
	for n := 0; d.at < len(d.s) && !d.over; n++ {
		switch {
		case d.take("X"):
			d.write("...")
			return true
		case d.take("Y"):
			if n > 0 {
				d.write(", ")
			}
			d.write("...")
			return true
		case d.take("Z"):
			return true
		}
		if n > 0 {
			d.write(", ")
		}
		if d.take("M") {
			d.write("scope ")
		}
		if d.take("Nk") {
			d.write("return ")
		}
		switch {
		case d.take("I"):
			d.write("in ")
			if d.take("K") {
				d.write("ref ")
			}
		case d.take("J"):
			d.write("out ")
		case d.take("K"):
			d.write("ref ")
		case d.take("L"):
			d.write("lazy ")
		}
		if !d.typ() {
			return false
		}
	}
	return false
}

// value reads a value of a type that has that name, and begins with kind.
func (d *dName) value(name string, kind byte) bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	c := d.peek(0)
	if !isDigit(c) && c != 'a' && c != 'w' && c != 'd' {
		d.at++
	}
	switch {
	case c == 'n':
		d.write("null")
		return true
	case c == 'N':
		d.write("-")
		return d.integer(kind)
	case c == 'i', isDigit(c): // the first compilers wrote no i
		return d.integer(kind)
	case c == 'e':
		return d.real()
	case c == 'c':
		if !d.real() || !d.take("c") {
			return false
		}
		d.write("+")
		ok := d.real()
		d.write("i")
		return ok
	case c == 'a', c == 'w', c == 'd':
		return d.text()
	case c == 'A' && kind == 'H':
		return d.list("[", "]", true)
	case c == 'A':
		return d.list("[", "]", false)
	case c == 'S':
		d.write(name)
		return d.list("(", ")", false)
	case c == 'f':
		return strings.HasPrefix(d.s[d.at:], "_D") && d.isSymbolName(d.at+2) && d.mangled()
	}
	return false
}

// list reads values, in pairs if it is of an associative array.
func (d *dName) list(open, end string, pairs bool) bool {
	n, ok := d.number()
	if !ok {
		return false
	}
	d.write(open)
	for k := range n {
		if k > 0 {
			d.write(", ")
		}
		if pairs {
			if !d.value("", 0) {
				return false
			}
			d.write(":")
		}
		if !d.value("", 0) || d.over {
			return false
		}
	}
	d.write(end)
	return true
}

// integer reads a number, a character or a bool.
func (d *dName) integer(kind byte) bool {
	if kind == 'a' || kind == 'u' || kind == 'w' || kind == 'b' {
		n, ok := d.number()
		switch {
		case kind == 'b':
			d.write(strconv.FormatBool(n != 0))
		case kind == 'a' && n >= ' ' && n < 0x7f:
			d.write("'" + string(rune(n)) + "'")
		default:
			width := map[byte]int{'a': 2, 'u': 4, 'w': 8}[kind]
			digits := strconv.FormatInt(int64(n), 16)
			if n == 0 {
				digits = ""
			}
			d.write("'\\" + map[byte]string{'a': "x", 'u': "u", 'w': "U"}[kind] + strings.Repeat("0", max(0, width-len(digits))) + digits + "'")
		}
		return ok
	}
	from := d.at
	for isDigit(d.peek(0)) {
		d.at++
	}
	d.write(d.s[from:d.at])
	switch kind {
	case 'h', 't', 'k':
		d.write("u")
	case 'l':
		d.write("L")
	case 'm':
		d.write("uL")
	}
	return d.at > from
}

func isHex(c byte) bool { return isDigit(c) || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f' }

// real reads a floating-point number, hexadecimal with a binary exponent.
func (d *dName) real() bool {
	for _, k := range [...][2]string{{"NAN", "NaN"}, {"INF", "Inf"}, {"NINF", "-Inf"}} {
		if d.take(k[0]) {
			d.write(k[1])
			return true
		}
	}
	if d.take("N") {
		d.write("-")
	}
	if !isHex(d.peek(0)) {
		return false
	}
	d.write("0x" + d.s[d.at:d.at+1] + ".")
	d.at++
	from := d.at
	for isHex(d.peek(0)) {
		d.at++
	}
	d.write(d.s[from:d.at])
	if !d.take("P") {
		return false
	}
	d.write("p")
	if d.take("N") {
		d.write("-")
	}
	from = d.at
	for isDigit(d.peek(0)) {
		d.at++
	}
	d.write(d.s[from:d.at])
	return true
}

// text reads a string: its kind, its length, and its bytes in hexadecimal.
func (d *dName) text() bool {
	kind := d.s[d.at : d.at+1]
	d.at++
	n, ok := d.number()
	if !ok || !d.take("_") || n > (len(d.s)-d.at)/2 {
		return false
	}
	d.write("\"")
	for range n {
		pair := d.s[d.at : d.at+2]
		v, err := strconv.ParseUint(pair, 16, 8)
		if err != nil || !isHex(pair[0]) {
			return false
		}
		d.at += 2
		switch c := byte(v); {
		case c >= ' ' && c < 0x7f:
			d.write(string(rune(c)))
		case c >= '\t' && c <= '\r':
			d.write("\\" + string("tnvfr"[c-'\t']))
		default:
			d.write("\\x" + pair)
		}
	}
	d.write("\"")
	if kind != "a" {
		d.write(kind)
	}
	return !d.over
}
