package demangle

import "strings"

// Name returns the full form of a mangled name, with parameters and template
// arguments: "ns::f<int>(char const*)"; for Swift it is what the Swift tools print
// without sugar for types: "app.Cart.add(_: app.Item) -> ()". A name that is not
// mangled, that is damaged, that is longer than 16 KiB, stands for more than
// 256 KiB or takes more work than a name of its length may is returned unchanged,
// and so are Objective-C's.
func Name(s string) string { return safely(s, false) }

// Short returns the name without parameters, template arguments and the suffixes of
// clones: "ns::f"; of what is declared in a function, "ns::f()::g". Like Name it returns what it does not know unchanged; what it
// leaves out is not looked at and may be damaged.
//
// Of Swift's names it leaves out the types of declarations, generic parameters,
// arguments and requirements, the modules of extensions, the discriminators of
// private declarations, suffixes, and the attributes that only say how a function
// came to be: specialized, merged, a partial function after an await. Modules and
// the labels of parameters stay, for they tell functions apart:
// "app.Cart.add(_:count:)", "closure #1 in app.run()", "type metadata for app.Cart".
func Short(s string) string { return safely(s, true) }

// safely is demangle for names that nobody thought of: should it panic, the name is returned
// as it is, since it came from outside and must do no harm.
func safely(s string, short bool) (name string) {
	defer func() {
		if recover() != nil {
			name = s
		}
	}()
	name, _ = demangle(s, short)
	return name
}

// demangle returns one of the forms of a name, and the steps that it took.
func demangle(s string, short bool) (name string, steps int) {
	if len(s) > maxInput {
		return s, 0
	}
	switch {
	case swiftMangled(s):
		return demangleSwift(s, short, 0, newBudget(s))
	case strings.HasPrefix(s, "_R"):
		return rustName(s, short)
	case strings.HasPrefix(s, "_ZN"):
		if name, ok := rustLegacyName(s, short); ok {
			return name, len(s)
		}
	case dlangMangled(s):
		return dlangName(s, short)
	case strings.HasPrefix(s, "_Z"): // by far the most
	case strings.HasPrefix(s, "caml"):
		name, _ := camlName(s, short)
		return name, len(s)
	case strings.HasPrefix(s, "__"):
		if name, ok := fortranName(s); ok {
			return name, len(s)
		}
	case surelyAda(s):
		return Ada(s), len(s)
	}
	return cppName(s, short)
}
