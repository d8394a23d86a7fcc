package demangle

import (
	"strconv"
	"strings"
	"testing"
)

// doubling makes a name of C++ each of whose parameters has the one before it three times. Each
// brings two substitutions, the template and itself; lead has brought as many as first says.
func doubling(lead string, first, n int) string {
	name := lead
	for k := range n {
		last := "S" + strings.ToUpper(strconv.FormatInt(int64(first+2*k-2), 36)) + "_"
		name += "1bI" + last + last + last + "E"
	}
	return name
}

// referring makes a name of Rust each of whose arguments has the one before it three times.
func referring(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name, last := "_RINvC1a1fTjjE", len("INvC1a1f")
	for range n {
		at := len(name) - len("_R")
		ref := "B" + digits[(last-1)%62:(last-1)%62+1] + "_"
		if last > 62 {
			ref = "B" + digits[(last-1)/62:(last-1)/62+1] + ref[1:]
		}
		name += "T" + ref + ref + ref + "E"
		last = at
	}
	return name + "E"
}

// hostileNames take, or once took, time or memory that grows faster than they do.
func hostileNames() map[string]string {
	times := strings.Repeat
	return map[string]string{
		"a pack":                        "_Z1fIJ" + times("i", 16000) + "EEvDpT_",
		"packs of packs":                "_Z1fIJ" + times("i", 8000) + "EEv" + times("DpT_", 2000),
		"expansions in expansions":      "_Z1fIJ" + times("i", 4000) + "EEv" + times("Dp", 900) + "T_",
		"empty packs":                   "_Z1fIJEEv" + times("DpT_", 4000),
		"doubled nothing":               doubling("_Z1fIJEEvDp1aIT_E", 4, 30),
		"doubled arguments":             doubling("_Z1f1aIiiE", 2, 34),
		"references to references":      "_Z1fI" + times("R", 900) + "iEv" + times("RT_", 500),
		"pointers":                      "_Z1f" + times("P", 16000) + "i",
		"pointers to functions":         "_Z1f" + times("PF", 900) + "i" + times("vE", 900),
		"pointers to arrays":            "_Z1f" + times("PA1_", 900) + "i",
		"arguments in arguments":        "_Z1f" + times("1aI", 4000) + "i" + times("E", 4000),
		"scopes":                        "_ZN" + times("1a", 7000) + "E",
		"scopes again and again":        "_ZN" + times("1a", 700) + "E" + times("S10_", 3000),
		"conversions in conversions":    "_ZN1A" + times("cvN1A", 500) + "cvT_IiE" + times("EIiE", 500) + "Ev",
		"a conversion to itself":        "_ZN1AcvT_IT_EEv",
		"functions in functions":        "_Z" + times("Z", 900) + "1fv" + times("E1gv", 899) + "E1h",
		"lambdas in lambdas":            "_Z1fI" + times("Ul", 900) + "v" + times("E_", 900) + "Evv",
		"tags":                          "_Z1f" + times("B1a", 5000),
		"qualifiers":                    "_Z1f" + times("K", 10000) + "i",
		"expressions":                   "_Z1fIX" + times("ng", 5000) + "Li1EEEvv",
		"a long name often":             "_Z1f4000" + times("a", 4000) + times("S_", 5000),
		"protocols":                     "_Z1f" + times("U11objcproto1A", 900) + "11objc_object",
		"Rust: doubled references":      referring(60),
		"Rust: a reference to itself":   "_RB_",
		"Rust: references":              "_RINvC1a1f" + times("R", 10000) + "jE",
		"Rust: tuples":                  "_RINvC1a1f" + times("T", 5000) + "j" + times("E", 5000) + "E",
		"Rust: many lifetimes":          "_RINvC1a1f" + times("FG3k_", 500) + times("Eu", 500) + "E",
		"Rust: Punycode":                "_RNvC1au15000_" + times("zzza", 3750),
		"Rust: old":                     "_ZN" + times("1a", 7000) + "17h0123456789abcdefE",
		"Rust: old, many hashes":        "_ZN" + times("17h0123456789abcdeX", 800) + "E",
		"D: references to references":   "_D1a1bF" + times("PQb", 5000) + "Zv",
		"D: pointers":                   "_D1a1bF" + times("P", 16000) + "iZv",
		"D: doubled tuples":             "_D1a1bFB2ii" + times("B2QfQh", 2500) + "Zv",
		"D: templates in templates":     "_D" + times("__T1aT", 2300) + "i" + times("Z", 2300) + "i",
		"D: symbols with lengths":       "_D" + times("__T1aS11111111", 1000) + "i" + times("Z", 1000) + "i",
		"D: references nowhere":         "_D1a" + times("QA", 7000),
		"D: names before all":           "_D" + times("1a6__initZ", 1500) + "Z",
		"D: a long tuple":               "_D1a1bFB4294967294" + times("i", 9000) + "Zv",
		"D: functions of functions":     "_D1a1bF" + times("PF", 5000) + "Zv",
		"OCaml: modules":                "caml" + times("A__", 5000) + "a_1",
		"Swift: repeated substitutions": "$s1a4main" + times("A2000a", 2500) + "D",
		"Swift: words of words":         "$s16" + times("aB", 8) + times("0aaaaaaaaaaaaA1b", 900) + "D",
		"Swift: doubled tuples":         "$sSi_Sit_ABt_ACt_ADt_AEt_AFt_AGt_AHt_AIt_AJt_AKt_ALt_AMt_ANt_AOt_APt_AQtD",
		"Swift: optionals":              "$sSi" + times("Sg", 8000) + "D",
		"Swift: functions":              "$s" + times("yyc", 5000) + "D",
		"Swift: parameters":             "$s4main1fyyx" + times("z", 8000) + "lF",
		"Swift: names in names":         "$s4main1fyyFTf" + times("3pf16$s4main1gyyFTf", 300) + "_n",
		"Swift: Punycode":               "$s002000_" + times("zzza", 500),
		"Swift, old: tuples":            "_Tt" + times("T", 900) + "Si" + times("_", 900),
		"Swift, old: a variadic tuple":  "_TtFtSi" + times("SS", 150) + "_Sb",
	}
}

// spent checks that a name costs no more than it may, and returns what it becomes.
func spent(t testing.TB, name string, short bool) string {
	t.Helper()
	got, steps := demangle(name, short)
	// The last step that is asked for may be of more than is there: a list, or a string.
	const overdraft = maxInput
	if most := newBudget(name).limit + overdraft; steps > most {
		t.Errorf("%d bytes took %d steps, at most %d: %.80q", len(name), steps, most, name)
	}
	if len(got) > max(len(name), maxOutput) {
		t.Errorf("%d bytes became %d: %.80q", len(name), len(got), name)
	}
	if name != "" && got == "" {
		t.Errorf("%.80q became nothing", name)
	}
	return got
}

func TestHostileNamesAreBoundedInWork(t *testing.T) {
	for what, name := range hostileNames() {
		if len(name) > maxInput {
			t.Errorf("%s: %d bytes, which aren't looked at", what, len(name))
		}
		for _, short := range []bool{false, true} {
			spent(t, name, short)
		}
	}
}

// What stays within bounds is written, however odd it is.
func TestLargeNamesAreWritten(t *testing.T) {
	times := strings.Repeat
	for _, test := range []struct{ mangled, full string }{
		{"_Z1fIJ" + times("i", 5000) + "EEvDpT_", "void f<int" + times(", int", 4999) + ">(int" + times(", int", 4999) + ")"},
		{"_Z1fIJEEv" + times("DpT_", 100), "void f<>()"},
		{"_Z1f" + times("P", 500) + "i", "f(int" + times("*", 500) + ")"},
		{"_RINvC1a1f" + times("R", 500) + "jE", "a::f::<" + times("&", 500) + "usize>"},
		{"_ZN" + times("1a", 400) + "17h0123456789abcdefE", "a" + times("::a", 399)},
		{"_ZN1AcvT_IiEEv", "A::operator int<int>()"},
	} {
		if got := spent(t, test.mangled, false); got != test.full {
			t.Errorf("%.60q became %.200q", test.mangled, got)
		}
	}
}

// What can't be written within bounds stays as it is.
func TestNamesBeyondBoundsStayAsTheyAre(t *testing.T) {
	hostile := hostileNames()
	for _, what := range []string{
		"packs of packs", "doubled arguments", "pointers", "arguments in arguments", "conversions in conversions",
		"Rust: doubled references", "Rust: references", "Swift: doubled tuples",
	} {
		name := hostile[what]
		if name == "" {
			t.Fatalf("there is no %q", what)
		}
		if got := Name(name); got != name {
			t.Errorf("%s: it became %d bytes", what, len(got))
		}
	}
	if long := "_Z1f" + strings.Repeat("i", maxInput); Name(long) != long {
		t.Error("a name that is too long was looked at")
	}
}

func TestTruncatedNamesAreHarmless(t *testing.T) {
	for _, name := range []string{
		"_ZN4llvm4yaml7yamlizeIA16_hEENSt9enable_ifIXsr16has_ScalarTraitsIT_EE5valueEvE4typeERNS0_2IOERS4_bRNS0_12EmptyContextE",
		"_ZZNK1A1fIJilEEEvDpT_ENKUlTyTnT_RT_E_clIiLi5EEEDaOS0_QaaL_Z4trueE1CIT_E.cold",
		"_Z1fIXtl1AtlA6_cLc104ELc101EEdi1xLd3ff199999999999aEdX1LLi1ELi2ELb1EEEEvPFDvT0_EM1BFvRDOngLi1EEFRA3_KivE",
		"_RINvMs0_NtNtC1a1bINtB5_1VDG_INtC1b1TRL0_hEp1IKhff_EL_E1fFUKC3absTjBf_EzKVNvC1b1SS1xh5_EE.llvm.7",
		"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
		"_GLOBAL__I__Z1fi", "___Z3foov_block_invoke_2", "__alloc_token_7__Z3foov",
	} {
		for end := range len(name) + 1 {
			for _, short := range []bool{false, true} {
				spent(t, name[:end], short)
				if end < len(name) {
					spent(t, name[:end]+name[end+1:], short)
				}
			}
		}
	}
}

// FuzzName looks for names that panic, or for which more is done than may be.
func FuzzName(f *testing.F) {
	for _, seed := range []string{
		"_Z1fi", "_ZNSt6vectorIiSaIiEE9push_backEOi", "_RINvNtC3std3mem8align_ofjE", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
		"_GLOBAL__sub_I_main", "___Z3foo_block_invoke_2", "main", "$s3app4CartC3add_5countyAA4ItemV_SitF", "_TFC3app4Cart3addfT1aSi1bSS_T_",
	} {
		f.Add(seed)
	}
	for _, name := range hostileNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, short := range []bool{false, true} {
			if got := spent(t, s, short); got != s && !mangledPrefix(s) {
				t.Errorf("%q became %q", s, got)
			}
		}
	})
}
