package demangle

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

const (
	// maxInput bounds the names that are looked at, in bytes. The longest of LLVM
	// and of large template-heavy programs are a tenth of it. The library's time
	// grows with the square of a name's nesting: at this length the worst names
	// took 0.6 s, at 64 KiB 10 s.
	maxInput = 16 << 10

	// maxOutputLog2 bounds what is made of a name: 2^18 bytes. Substitutions let
	// a short name stand for one of exponential length.
	maxOutputLog2 = 18
)

// Name returns the full form of a mangled name, with parameters and template
// arguments: "ns::f<int>(char const*)"; for Swift it is what the Swift tools print
// without sugar for types: "app.Cart.add(_: app.Item) -> ()". A name that is not
// mangled, that is damaged, that is longer than 16 KiB or stands for more than
// 256 KiB is returned unchanged, and so are Objective-C's.
func Name(s string) string {
	if swiftMangled(s) {
		return swiftName(s, false)
	}
	return filter(s)
}

// Short returns the name without parameters, template arguments and the suffixes of
// clones: "ns::f". Like Name it returns what it does not know unchanged; what it
// leaves out is not looked at and may be damaged.
//
// Of Swift's names it leaves out the types of declarations, generic parameters,
// arguments and requirements, the modules of extensions, the discriminators of
// private declarations, suffixes, and the attributes that only say how a function
// came to be: specialized, merged, a partial function after an await. Modules and
// the labels of parameters stay, for they tell functions apart:
// "app.Cart.add(_:count:)", "closure #1 in app.run()", "type metadata for app.Cart".
func Short(s string) string {
	if swiftMangled(s) {
		return swiftName(s, true)
	}
	name := filter(s, demangle.NoParams, demangle.NoTemplateParams, demangle.NoEnclosingParams)
	if strings.HasPrefix(s, "_R") && name != s {
		name = strings.ReplaceAll(name, "::<>", "") // what stays of Rust's type arguments
	}
	return name
}

// filter runs the demangler. Should that panic, on a name that nobody thought of,
// the name is returned as it is: it came from outside and must do no harm.
func filter(s string, options ...demangle.Option) (name string) {
	if len(s) > maxInput || !mangled(s) {
		return s
	}
	defer func() {
		if recover() != nil {
			name = s
		}
	}()
	name, err := demangle.ToString(s, append(options, demangle.LLVMStyle, demangle.MaxLength(maxOutputLog2))...)
	if err != nil || name == "" || len(name) >= 1<<maxOutputLog2 {
		return s
	}
	// LLVM writes the arguments right behind an operator's name.
	if strings.Contains(name, "operator<") {
		name = strings.NewReplacer("operator<< <", "operator<<<", "operator< <", "operator<<").Replace(name)
	}
	return joinSuffixes(name)
}

// joinSuffixes writes the suffixes of clones as LLVM does, all in one pair of
// parentheses: "f() (.part.0.cold)" for "f() (.part.0) (.cold)".
func joinSuffixes(name string) string {
	const open, between = " (.", ") (."
	end := len(name)
	for strings.HasSuffix(name[:end], ")") {
		k := strings.LastIndex(name[:end], open)
		if k < 0 || strings.ContainsAny(name[k+len(open):end-1], "() ") {
			break
		}
		end = k
	}
	if end == len(name) || end == 0 {
		return name
	}
	return name[:end] + strings.ReplaceAll(name[end:], between, ".")
}

// mangled says whether a name begins like a mangled one; that spares the others,
// all of C, the demangler's work.
func mangled(s string) bool {
	for _, prefix := range [...]string{"_Z", "_R", "___Z", "_GLOBAL_", "__alloc_token_"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
