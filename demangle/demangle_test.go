package demangle

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesInBothForms(t *testing.T) {
	for _, test := range []struct{ mangled, full, short string }{
		{"_Z1fi", "f(int)", "f"},
		{"_ZN2ns1C1mEPKc", "ns::C::m(char const*)", "ns::C::m"},
		{"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int>>::push_back(int&&)", "std::vector::push_back"},
		{"_ZN2ns1fEv.cold", "ns::f() (.cold)", "ns::f"},
		{"_ZN2ns1fEv.part.0", "ns::f() (.part.0)", "ns::f"},
		{"_ZN2ns1fEv.part.0.cold", "ns::f() (.part.0.cold)", "ns::f"},
		{"_ZlsIiERSoS0_RKT_", "std::ostream& operator<<<int>(std::ostream&, int const&)", "operator<<"},
		{"_ZTV1C", "vtable for C", "vtable for C"},
		{"_GLOBAL__I__Z1fi", "global constructors keyed to f(int)", "global constructors keyed to f"},
		// Rust, the old mangling: the hash goes.
		{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad", "core::fmt::Formatter::pad"},
		{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
			"<Test + 'static as foo::Bar<Test>>::bar", "<Test + 'static as foo::Bar<Test>>::bar"},
		{"_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h05af221e174051e9E.llvm.9", "std::sys::backtrace::__rust_begin_short_backtrace", ""},
		{"_ZN3foo3bar17h05af221e174051e9E.cold", "foo::bar (.cold)", "foo::bar"},
		// C++ has such a name too, but not of so many different digits.
		{"_ZN3foo17h0000000000000000E", "foo::h0000000000000000", ""},
		// Rust, the new one.
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo"},
		{"_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>", "std::mem::align_of"},
		{"_RNvNtCs1234_7mycrate3foo3bar.llvm.123", "mycrate::foo::bar (.llvm.123)", "mycrate::foo::bar"},
		{"_RNCNCNCNvC1a1f00s_0", "a::f::{closure#0}::{closure#0}::{closure#1}", ""},
		{"_RNvNCNKNvNCNvC1a1S0s1n_1T0023___RUST_STD_INTERNAL_VAL", "a::S::{closure#0}::T::{K#0}::{closure#0}::__RUST_STD_INTERNAL_VAL", ""},
		{"_RNnNvC1a1S0", "a::S", ""},
		{"_RNvMC1aINtB2_1VAhj4_E1f", "<a::V<[u8; 4]>>::f", "<a::V>::f"},
		{"_RNvXC1aINtB2_1VhENtB2_1T1f", "<a::V<u8> as a::T>::f", "<a::V as a::T>::f"},
		{"_RINvC1a1fFG_KCRL0_hEuE", "a::f::<for<'a> extern \"C\" fn(&'a u8)>", "a::f"},
		{"_RINvC1a1fDINtC1b1ThEp1IjEL_E", "a::f::<dyn b::T<u8, I = usize>>", "a::f"},
		{"_RINvC1a1fKi7b_Kin7b_Kb1_Kc41_Kj123456789abcdef01_E", "a::f::<123, -123, true, 'A', 0x123456789abcdef01>", "a::f"},
		{"_RINvC1a1fKRe616263_KTh1_h2_EKVNvC1b1SS1xh5_EE", "a::f::<\"abc\", {(1, 2)}, {b::S { x: 5 }}>", "a::f"},
		{"_RNvC1au8gdel_5qa", "a::gödel", ""},
		{"_RINvC1a1fTjjETB7_B7_EE", "a::f::<(usize, usize), ((usize, usize), (usize, usize))>", "a::f"},
		// Of what is declared in functions.
		{"_ZZN1A1fIiEEvT_E1g", "void A::f<int>(int)::g", "A::f()::g"},
		{"_ZZNK1A1fEiENKUliE_clEi", "A::f(int) const::'lambda'(int)::operator()(int) const", "A::f() const::'lambda'(int)::operator()"},
		// What LLVM cannot read, or reads wrongly: template parameters of local entities, GCC's
		// names in scopes of std, arguments within the type of a conversion, a template that is
		// a parameter.
		{"_ZZ1fvEN1A1gIiEEvT_", "void f()::A::g<int>(int)", "f()::A::g"},
		{"_Z1fIiXsrSt7is_sameIT_iE5valueEEvv", "void f<int, std::is_same<int, int>::value>()", "f"},
		{"_ZN1AcvSt6vectorI1BSaIS1_EEEv", "A::operator std::vector<B, std::allocator<B>>()", "A::operator std::vector"},
		{"_ZN3FooIiE6methodIb3BarEEvT0_IT_ES3_IiE", "void Foo<int>::method<bool, Bar>(Bar<bool>, Bar<int>)", "Foo::method"},
		{"_ZGTtN1AD1Ev", "transaction clone for A::~A()", "transaction clone for A::~A"},
		{"_ZThn8_N1A1fEi", "non-virtual thunk to A::f(int)", "non-virtual thunk to A::f"},
		{"___Z3foov_block_invoke_2", "invocation function for block in foo()", "invocation function for block in foo"},
		{"__alloc_token_7__Z3foov", "foo() (.alloc_token)", "foo"},
		// Clang's names in scopes, which are no substitutions.
		{"_ZN4llvm4yaml7yamlizeIA16_hEENSt9enable_ifIXsr16has_ScalarTraitsIT_EE5valueEvE4typeERNS0_2IOERS4_bRNS0_12EmptyContextE",
			"std::enable_if<has_ScalarTraits<unsigned char [16]>::value, void>::type llvm::yaml::yamlize<unsigned char [16]>(llvm::yaml::IO&, unsigned char (&) [16], bool, llvm::yaml::EmptyContext&)",
			"llvm::yaml::yamlize"},
	} {
		if test.short == "" {
			test.short = test.full
		}
		if got := Name(test.mangled); got != test.full {
			t.Errorf("Name(%q) = %q, want %q", test.mangled, got, test.full)
		}
		if got := Short(test.mangled); got != test.short {
			t.Errorf("Short(%q) = %q, want %q", test.mangled, got, test.short)
		}
	}
}

func TestUnknownNamesStayAsTheyAre(t *testing.T) {
	for _, name := range []string{
		"", "main", "_start", "_Z", "_R", "_Restore", "_Zzz", "_ZN", "__Z1fi", "malloc@@GLIBC_2.2.5", "\xff\x00", "_ZN4\xff",
		"_Z1f" + strings.Repeat("P", maxInput) + "i",
	} {
		if got := Name(name); got != name {
			t.Errorf("Name(%.40q) = %.40q", name, got)
		}
		if got := Short(name); got != name {
			t.Errorf("Short(%.40q) = %.40q", name, got)
		}
	}
}

// mangledPrefix says whether a name begins like a mangled one.
func mangledPrefix(s string) bool {
	return swiftMangled(s) || dlangMangled(s) || s == "_Dmain" || strings.HasPrefix(s, "caml") || strings.Contains(s, "_MOD_") || surelyAda(s) || slices.ContainsFunc([]string{"_Z", "_R", "___Z", "_GLOBAL_", "__alloc_token_"},
		func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}
