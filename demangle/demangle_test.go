package demangle

import (
	"debug/elf"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// need skips a test whose outside capability is missing, and fails it where the
// whole set of tools is promised.
func need(t testing.TB, capability string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("needs %s: %v", capability, err)
	}
	t.Skipf("needs %s: %v", capability, err)
}

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
		{"_GLOBAL__I__Z1fi", "global constructors keyed to f(int)", "global constructors keyed to f(int)"},
		// Rust, the old mangling: the hash goes.
		{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad", "core::fmt::Formatter::pad"},
		{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
			"<Test + 'static as foo::Bar<Test>>::bar", "<Test + 'static as foo::Bar<Test>>::bar"},
		// Rust, the new one.
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo"},
		{"_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>", "std::mem::align_of"},
	} {
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

// Each line of template arguments doubles the one before, so that a few hundred
// bytes stand for more than the output's bound.
func TestExponentialNamesStayAsTheyAre(t *testing.T) {
	digits := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := "_Z1f1aIiiE"
	for k := range 30 {
		last := "S" + digits[k:k+1] + "_"
		name += "1bI" + last + last + last + "E"
	}
	if got := Name(name); got != name && len(got) >= 1<<maxOutputLog2 {
		t.Errorf("%d bytes became %d", len(name), len(got))
	}
}

// The C++ runtime's own names, against LLVM's demangler.
func TestNamesOfTheRuntimeAsLLVMWritesThem(t *testing.T) {
	cxxfilt, err := exec.LookPath("llvm-cxxfilt-19")
	need(t, "llvm-cxxfilt-19", err)
	names := runtimeNames(t)
	cmd := exec.Command(cxxfilt)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("llvm-cxxfilt-19: %v", err)
	}
	want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(want) != len(names) {
		t.Fatalf("llvm-cxxfilt-19 answered %d of %d names", len(want), len(names))
	}
	for k, name := range names {
		if strings.HasPrefix(name, "_ZGTt") { // transaction clones, which LLVM doesn't know
			continue
		}
		if got := Name(name); got != want[k] {
			t.Errorf("Name(%q)\n got %q\nwant %q", name, got, want[k])
		}
	}
}

// runtimeNames returns the mangled names that libstdc++ exports.
func runtimeNames(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("gcc", "-print-file-name=libstdc++.so.6").Output()
	need(t, "gcc", err)
	f, err := elf.Open(strings.TrimSpace(string(out)))
	need(t, "libstdc++.so.6", err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "_Z") {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 3000 {
		t.Fatalf("libstdc++ exports %d mangled names, want thousands", len(names))
	}
	return names
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{"_Z1fi", "_ZNSt6vectorIiSaIiEE9push_backEOi", "_RINvNtC3std3mem8align_ofjE", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "_GLOBAL__sub_I_main", "___Z3foo_block_invoke_2", "main"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range []func(string) string{Name, Short} {
			got := form(s)
			if s != "" && got == "" {
				t.Errorf("%q became nothing", s)
			}
			if len(got) > max(len(s), 1<<maxOutputLog2) {
				t.Errorf("%d bytes became %d", len(s), len(got))
			}
			if !mangled(s) && !swiftMangled(s) && got != s {
				t.Errorf("%q became %q", s, got)
			}
		}
	})
}
