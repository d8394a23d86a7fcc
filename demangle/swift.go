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

// swiftName returns what a mangled name of Swift stands for, or the name itself if
// it cannot be read.
func swiftName(s string, short bool) string {
	if len(s) > maxInput {
		return s
	}
	return demangleSwift(s, short, 0)
}

// demangleSwift is swiftName for a name that stands in so many others.
func demangleSwift(s string, short bool, nested int) string {
	mangling, text := swiftPrefix(s)
	var name string
	switch mangling {
	case swiftNone:
	case swiftOld:
		name = demangleOld(text, short, nested)
	default:
		name = demangleCurrent(text, mangling == swiftFour, short, nested)
	}
	if name == "" {
		return s
	}
	return name
}

// demangleCurrent reads a name in the mangling since 4.0. It returns nothing if it
// cannot.
func demangleCurrent(text string, labelsInTypes, short bool, nested int) string {
	var p swiftParser
	p.text, p.labelsInTypes, p.short, p.nested = text, labelsInTypes, short, nested
	if !p.parse() {
		return ""
	}
	p.writeTopLevel(p.stack.from(0))
	if p.failed {
		return ""
	}
	return string(p.written())
}

// demangleOld reads a name in the mangling before 4.0. It returns nothing if it
// cannot.
func demangleOld(text string, short bool, nested int) string {
	var p swiftOldParser
	p.text, p.short, p.nested = text, short, nested
	if !p.parse() {
		return ""
	}
	p.writeTopLevel(p.stack.from(0))
	if p.failed {
		return ""
	}
	return string(p.written())
}
