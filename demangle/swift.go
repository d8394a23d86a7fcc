package demangle

import "strings"

// A swiftMangling is one of the ways Swift has mangled names.
type swiftMangling uint8

const (
	swiftNone    swiftMangling = iota
	swiftOld                   // before 4.0, and still the names of Objective-C classes
	swiftFour                  // 4.0: labels stand in the types
	swiftCurrent               // since 4.2
)

// swiftPrefix returns how a name is mangled and what follows the prefix. Before it
// the underscore may stand that Mach-O puts before all names.
func swiftPrefix(s string) (swiftMangling, string) {
	if strings.HasPrefix(s, "__T") || strings.HasPrefix(s, "_$") {
		s = s[1:]
	}
	if len(s) < 3 {
		return swiftNone, ""
	}
	switch s[0] {
	case '$':
		if s[1] == 's' || s[1] == 'S' || s[1] == 'e' {
			return swiftCurrent, s[2:]
		}
	case '@':
		if rest, ok := strings.CutPrefix(s, "@__swiftmacro_"); ok {
			return swiftCurrent, rest
		}
	case '_':
		if s[1] == 'T' && s[2] == '0' {
			return swiftFour, s[3:]
		}
		if s[1] == 'T' {
			return swiftOld, s[2:]
		}
	}
	return swiftNone, ""
}

// swiftMangled says whether a name begins like one of Swift's.
func swiftMangled(s string) bool {
	mangling, _ := swiftPrefix(s)
	return mangling != swiftNone
}

// demangleSwift returns what a mangled name of Swift, which stands in so many others, stands
// for, and the steps that took. It is the name itself if it cannot be read.
func demangleSwift(s string, short bool, nested int, b budget) (name string, spent int) {
	mangling, text := swiftPrefix(s)
	switch mangling {
	case swiftNone:
	case swiftOld:
		name, spent = demangleOld(text, short, nested, b)
	default:
		name, spent = demangleCurrent(text, mangling == swiftFour, short, nested, b)
	}
	if name == "" {
		return s, spent
	}
	return name, spent
}

// demangleCurrent reads a name in the mangling since 4.0. It returns nothing if it
// cannot.
func demangleCurrent(text string, labelsInTypes, short bool, nested int, b budget) (string, int) {
	var p swiftParser
	p.budget = b
	p.text, p.labelsInTypes, p.short, p.nested = text, labelsInTypes, short, nested
	if !p.parse() {
		return "", p.spent
	}
	p.writeTopLevel(p.stack.from(0))
	if p.over {
		return "", p.spent
	}
	return string(p.written()), p.spent
}

// demangleOld reads a name in the mangling before 4.0. It returns nothing if it
// cannot.
func demangleOld(text string, short bool, nested int, b budget) (string, int) {
	var p swiftOldParser
	p.budget = b
	p.text, p.short, p.nested = text, short, nested
	if !p.parse() {
		return "", p.spent
	}
	p.writeTopLevel(p.stack.from(0))
	if p.over {
		return "", p.spent
	}
	return string(p.written()), p.spent
}
