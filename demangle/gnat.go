package demangle

import "strings"

// Ada returns the Ada name that GNAT has made a linkage name of (its exp_dbug), as the GNU tools write it:
// "ada.text_io.put_line" of ada__text_io__put_line. What GNAT makes besides (tables, exceptions, types) stays, as does
// what isn't in its form. In Short and Name only names are taken for Ada's that nobody else would choose: many C programs
// have names like uv__io_poll.
func Ada(s string) string {
	if name, ok := gnatName(s); ok {
		return name
	}
	return s
}

// surelyAda says whether a name in GNAT's form can be of nothing but Ada: of a library unit, of the packages that all
// compilers bring along, or of the elaboration of a package.
func surelyAda(s string) bool {
	for _, root := range [...]string{"_ada_", "ada__", "system__", "interfaces__", "gnat__"} {
		if strings.HasPrefix(s, root) {
			return true
		}
	}
	return strings.HasSuffix(s, "___elabb") || strings.HasSuffix(s, "___elabs")
}

var gnatOperators = [...][2]string{
	{"Oabs", "abs"}, {"Oand", "and"}, {"Omod", "mod"}, {"Onot", "not"}, {"Oor", "or"}, {"Orem", "rem"}, {"Oxor", "xor"},
	{"Oeq", "="}, {"One", "/="}, {"Olt", "<"}, {"Ole", "<="}, {"Ogt", ">"}, {"Oge", ">="}, {"Oadd", "+"}, {"Osubtract", "-"},
	{"Oconcat", "&"}, {"Omultiply", "*"}, {"Odivide", "/"}, {"Oexpon", "**"},
}

var gnatSpecial = [...][2]string{
	{"_elabb", "'Elab_Body"}, {"_elabs", "'Elab_Spec"}, {"_size", "'Size"}, {"_alignment", "'Alignment"}, {"_assign", `.":="`},
}

var gnatStreams = map[byte]string{'R': "'Read", 'W': "'Write", 'I': "'Input", 'O': "'Output"}

// gnatReader reads a name from left to right.
type gnatReader struct {
	rest string
	out  []byte
}

func (g *gnatReader) at(k int) byte {
	if k < len(g.rest) {
		return g.rest[k]
	}
	return 0
}

func (g *gnatReader) take(s string) bool {
	rest, ok := strings.CutPrefix(g.rest, s)
	g.rest = rest
	return ok
}

// skip passes over bytes of a set.
func (g *gnatReader) skip(set string) { g.rest = strings.TrimLeft(g.rest, set) }

const decimal = "0123456789"

func gnatName(s string) (name string, ok bool) {
	if len(s) > maxInput {
		return s, false
	}
	g := &gnatReader{rest: strings.TrimPrefix(s, "_ada_")}
	if !isLower(g.at(0)) {
		return s, false
	}
	g.out = make([]byte, 0, len(s)+8)
	for {
		if !g.entity() {
			return s, false
		}
		more, ok := g.behind()
		if !ok {
			return s, false
		}
		if !more {
			return string(g.out), true
		}
	}
}

// entity reads an identifier or an operator.
func (g *gnatReader) entity() bool {
	if isLower(g.at(0)) {
		n := 1
		for isLower(g.at(n)) || isDigit(g.at(n)) || g.at(n) == '_' && (isLower(g.at(n+1)) || isDigit(g.at(n+1))) {
			n++
		}
		g.out = append(g.out, g.rest[:n]...)
		g.rest = g.rest[n:]
		return true
	}
	for _, op := range gnatOperators {
		if g.take(op[0]) {
			g.out = append(append(append(g.out, '"'), op[1]...), '"')
			return true
		}
	}
	return false
}

// behind reads what stands behind an entity: more says that another one follows.
func (g *gnatReader) behind() (more, ok bool) {
	if g.take("TK") { // of a task: its body, or what is declared in it
		if g.take("__") {
			g.out = append(g.out, '.')
			return true, true
		}
		return false, g.rest == "B"
	}
	switch g.rest {
	case "P", "N": // of a protected type
		return false, true
	case "E", "S": // an exception, the names of an enumeration
		return false, false
	}
	if g.take("X") { // nested in a body
		g.skip("nb")
	}
	if text, is := gnatStreams[g.at(1)]; g.at(0) == 'S' && g.at(1) != 0 && (g.at(2) == '_' || g.at(2) == 0) {
		if !is {
			return false, false
		}
		g.out = append(g.out, text...)
		g.rest = g.rest[2:]
	} else if g.at(0) == 'D' { // of a controlled type
		switch g.at(1) {
		case 'F':
			g.out = append(g.out, ".Finalize"...)
		case 'A':
			g.out = append(g.out, ".Adjust"...)
		default:
			return false, false
		}
		return false, true
	}
	if g.at(0) == '_' {
		if more, done, ok := g.separator(); more || done || !ok {
			return more, ok
		}
	}
	if g.at(0) == '.' && isDigit(g.at(1)) { // nested
		g.rest = g.rest[1:]
		g.skip(decimal)
	}
	return false, g.rest == ""
}

// separator reads what begins with an underscore; done says that the name ends with it, whatever follows.
func (g *gnatReader) separator() (more, done, ok bool) {
	switch {
	case !g.take("__"):
		if g.at(1) != 'B' && g.at(1) != 'E' {
			return false, false, false
		}
		g.rest = g.rest[2:] // the body of an entry, or its barrier
		g.skip(decimal)
		return false, true, g.rest == "s"
	case isDigit(g.at(0)): // one of several of that name
		for isDigit(g.at(0)) || g.at(0) == '_' && isDigit(g.at(1)) {
			g.rest = g.rest[1:]
		}
		if g.take("X") {
			g.skip("nb")
		}
		return false, false, true
	case g.at(0) == '_' && g.at(1) != '_':
		for _, k := range gnatSpecial {
			if strings.HasPrefix(g.rest, k[0]) {
				g.out = append(g.out, k[1]...)
				return false, true, true
			}
		}
		return false, false, false
	}
	g.out = append(g.out, '.')
	return true, false, true
}
