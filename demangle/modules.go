package demangle

import "strings"

// camlName returns the name of what OCaml's native compiler has made camlUnit__name_123 of: units of a library and modules
// in one another are separated by two underscores (since OCaml 5.1 the last by a dot), bytes that linkers don't take are
// written as $ and two hexadecimal digits, and the number tells declarations of one name apart. The short form leaves that out.
func camlName(s string, short bool) (name string, ok bool) {
	rest, ok := strings.CutPrefix(s, "caml")
	if !ok || rest == "" || !isUpper(rest[0]) || !strings.Contains(rest, "__") && strings.IndexByte(rest, '.') < 0 {
		return s, false
	}
	out := make([]byte, 0, len(rest))
	for k := 0; k < len(rest); k++ {
		switch c := rest[k]; {
		case c == '_' && k+2 < len(rest) && rest[k+1] == '_' && k > 0 && rest[k-1] != '_':
			out = append(out, '.')
			k++
		case c == '$' && k+2 < len(rest) && isHex(rest[k+1]) && isHex(rest[k+2]):
			out = append(out, unhex(rest[k+1])<<4|unhex(rest[k+2]))
			k += 2
		case c == '_' || c == '.' || c == '\'' || c == '@' || isDigit(c) || isLower(c) || isUpper(c):
			out = append(out, c)
		default:
			return s, false
		}
	}
	if short {
		if k := strings.LastIndexByte(string(out), '_'); k > 0 && k+1 < len(out) && strings.Trim(string(out[k+1:]), decimal) == "" && out[k-1] != '.' {
			out = out[:k]
		}
	}
	return string(out), true
}

func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

// fortranName returns module::name of __module_MOD_name, as GNU Fortran calls procedures and variables of modules.
func fortranName(s string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(s, "__")
	if !ok {
		return s, false
	}
	module, name, ok := strings.Cut(rest, "_MOD_")
	if !ok || !isFortran(module) || !isFortran(name) {
		return s, false
	}
	return strings.ReplaceAll(module, ".", "::") + "::" + name, true
}

// isFortran says whether a name is one of Fortran's, in lower case as the compiler makes it; submodules have a dot.
func isFortran(name string) bool {
	if name == "" || !isLower(name[0]) {
		return false
	}
	for k := range len(name) {
		if c := name[k]; !isLower(c) && !isDigit(c) && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
