package demangle

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func swiftTests() []swiftTest { return slices.Concat(swiftDeclarations, swiftThunks) }

func TestSwiftNamesInBothForms(t *testing.T) {
	for _, test := range swiftTests() {
		if got := Name(test.mangled); got != test.full {
			t.Errorf("Name(%q)\n got %q\nwant %q", test.mangled, got, test.full)
		}
		want := test.short
		if want == "" {
			want = test.full
		}
		if got := Short(test.mangled); got != want {
			t.Errorf("Short(%q)\n got %q\nwant %q", test.mangled, got, want)
		}
	}
}

func TestNamesThatAreNotSwiftsStayAsTheyAre(t *testing.T) {
	for _, name := range []string{
		"-[Cart addItem:]", "+[Cart shared]", "_OBJC_CLASS_$_Cart", "_OBJC_CLASS_$__TtC3app4Cart", "$d", "$x.0", "$s", "_$s", "$S", "_T", "__T", "_T0",
		"_Tiger", "_Timer_start", "__Tracer", "@__swiftmacro_", "$string", "$sy", "$s_", "$sK", "$s4app", "$s3appXYZ", "$sSiSizzzG",
		"$s\x01abcdD", "$s3app4mainyyF\x00", "$s3app4mainyyFé", "$s99999999999999999999a", "$s0a", "$s00", "$s0", "$sA", "$sAZ", "$sSi2049", "$sTg", "$sTf4",
		"_Tt", "_TtC", "_TTSg", "_TtG", "_TF3app", "_TTRXFo_",
	} {
		if got := Name(name); got != name {
			t.Errorf("Name(%q) = %q", name, got)
		}
		if got := Short(name); got != name {
			t.Errorf("Short(%q) = %q", name, got)
		}
	}
}

// checkSwift runs both forms on a name that may be damaged.
func checkSwift(t *testing.T, name string) {
	t.Helper()
	for _, form := range []func(string) string{Name, Short} {
		got := form(name)
		if name != "" && got == "" {
			t.Errorf("%q became nothing", name)
		}
		if got != name && len(got) >= maxOutput {
			t.Errorf("%d bytes became %d", len(name), len(got))
		}
		if got != name && !swiftMangled(name) && !mangledPrefix(name) {
			t.Errorf("%q became %q", name, got)
		}
	}
}

func TestTruncatedSwiftNamesAreHarmless(t *testing.T) {
	for _, test := range swiftTests() {
		for end := range test.mangled {
			checkSwift(t, test.mangled[:end])
		}
	}
}

func TestSwiftNamesWithFlippedBitsAreHarmless(t *testing.T) {
	for _, test := range swiftTests() {
		for i := range test.mangled {
			for bit := range 8 {
				damaged := []byte(test.mangled)
				damaged[i] ^= 1 << bit
				checkSwift(t, string(damaged))
			}
		}
	}
}

// Each of these stands for something that is far too long, too deep or too much.
func TestHostileSwiftNamesStayAsTheyAre(t *testing.T) {
	// Each type has the one before it for both arguments.
	doubling := "$s3app3BoxVyS2iG"
	for k := range 22 {
		last := string(rune('D' + k))
		doubling += "ACyA2" + last + "G"
	}
	for _, name := range []string{
		doubling,
		"$sSi" + strings.Repeat("Sg", 8000) + "D",
		"$s3app3BoxV" + strings.Repeat("A2048C", 2000),
		"$sS" + strings.Repeat("2048iS", 2000),
		"$s" + strings.Repeat("3app", 3) + strings.Repeat("y", 16000),
		"$s" + strings.Repeat("1a", 8000) + strings.Repeat("_", 300),
		"$sx" + strings.Repeat("m", 16000) + "D",
		"$s3app1aV" + strings.Repeat("1aV", 5000),
		"$s3app1fyyF" + strings.Repeat("yycfU_", 2500),
		"_Tt" + strings.Repeat("GSq", 5000),
		"_TtF" + strings.Repeat("T", 16000),
		"_Tt" + strings.Repeat("M", 16000) + "Si",
		"_TtCCCCCC" + strings.Repeat("C", 16000),
		"_Ttu" + strings.Repeat("9", 16000) + "_rSi",
		"$s0016000_" + strings.Repeat("a", 16000),
		"$s3app1fyyF" + strings.Repeat("7$s1a1bVTf4pf_n", 900),
		"$s3app4mainyyF" + strings.Repeat("TA", 8000),
	} {
		start := time.Now()
		for _, form := range []func(string) string{Name, Short} {
			if got := form(name); len(got) >= maxOutput {
				t.Errorf("%.40q…: %d bytes became %d", name, len(name), len(got))
			}
		}
		t.Logf("%.40q…: %v", name, time.Since(start))
	}
	if got := Name(doubling); got != doubling {
		t.Errorf("%d bytes became %d", len(doubling), len(got))
	}
}

// What a name stands for is all that is allocated: the rest stays on the stack.
func TestSwiftNamesAllocateTheirResultAlone(t *testing.T) {
	for _, name := range swiftBenchNames {
		if got := testing.AllocsPerRun(100, func() { Name(name) }); got > 1 {
			t.Errorf("Name(%q) allocates %v times", name, got)
		}
	}
}

// Names of real programs with what Swift's own tools print for them, one a line
// with a tab between. They stand outside the project and are named by a variable.
func TestSwiftNamesThatWereHeldBack(t *testing.T) {
	path := os.Getenv("CALLREEL_SWIFT_SYMBOLS")
	if path == "" {
		t.Skip("needs CALLREEL_SWIFT_SYMBOLS: a file of mangled names and their full forms")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	total, right := 0, 0
	for lines.Scan() {
		name, want, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			t.Fatalf("%s: line %d has no tab", path, total+1)
		}
		total++
		if got := Name(name); got == want {
			right++
		} else {
			t.Logf("Name(%q)\n got %q\nwant %q", name, got, want)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d names to the letter", right, total)
	if total == 0 || right*100 < total*99 {
		t.Errorf("%d of %d names are right, want 99 %%", right, total)
	}
}

func FuzzSwift(f *testing.F) {
	for _, test := range swiftTests() {
		f.Add(test.mangled)
	}
	f.Fuzz(func(t *testing.T, name string) {
		checkSwift(t, name)
		if !swiftMangled(name) {
			checkSwift(t, "$s"+name)
			checkSwift(t, "_T"+name)
		}
	})
}
