package demangle

import (
	"os"
	"strings"
	"testing"
)

// pairs reads a file of lines of a name, a tab and what it is to become.
func pairs(t testing.TB, path string) [][2]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list [][2]string
	for line := range strings.Lines(string(data)) {
		name, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("%s: %q", path, line)
		}
		list = append(list, [2]string{name, want})
	}
	if len(list) < 100 {
		t.Fatalf("%s: %d names", path, len(list))
	}
	return list
}

// The names are of GCC's Phobos and D runtime 12; beside them is what GNU c++filt -s dlang 2.40 says.
func TestNamesOfDAsGNUWritesThem(t *testing.T) {
	for _, p := range pairs(t, "testdata/dlang.txt") {
		if got := spent(t, p[0], false); got != p[1] {
			t.Errorf("%s\n got %s\nwant %s", p[0], got, p[1])
		}
		if short := spent(t, p[0], true); short == p[0] || len(short) > len(p[1]) {
			t.Errorf("%s in short is %s", p[0], short)
		}
	}
}

// The names are of GNAT's runtime 12; beside them is what GNU c++filt -s gnat 2.40 says, without its angle brackets.
func TestNamesOfAdaAsGNUWritesThem(t *testing.T) {
	for _, p := range pairs(t, "testdata/gnat.txt") {
		if got := Ada(p[0]); got != p[1] {
			t.Errorf("%s\n got %s\nwant %s", p[0], got, p[1])
		}
	}
}

func TestNamesOfFurtherLanguagesInBothForms(t *testing.T) {
	for _, k := range []struct{ mangled, full, short string }{
		{"_Dmain", "D main", "D main"},
		{"_D3std4conv__T2toTAyaZ__TQlTiZQqFNaNbNfiZQx", "std.conv.to!(immutable(char)[]).to!(int).to(int)", "std.conv.to.to.to"},
		{"_D2rt5minfo11ModuleGroup8runCtorsMFZv", "rt.minfo.ModuleGroup.runCtors()", "rt.minfo.ModuleGroup.runCtors"},
		// The module's name is of one letter, which older compilers' length of an argument could be.
		{"_D3std9algorithm9iteration__T12FilterResultS1a4mainFZ9__lambda4TSQClQCkQCd__T9MapResultSQBsQBtFZ9__lambda3TSQEc5range__T4iotaTiTiZQkFiiZ6ResultZQCpZQEp5emptyMFNaNbNdNiNfZb",
			"std.algorithm.iteration.FilterResult!(a.main().__lambda4, std.algorithm.iteration.MapResult!(a.main().__lambda3, std.range.iota!(int, int).iota(int, int).Result).MapResult).FilterResult.empty()",
			"std.algorithm.iteration.FilterResult.FilterResult.empty"},
		{"_D1a1C1fMxFiZv", "a.C.f(int) const", "a.C.f"},
		{"_D1a1C6__initZ", "initializer for a.C", "initializer for a.C"},
		{"_D1a__T1fVAyaa3_616263Z1fFZv", `a.f!("abc").f()`, "a.f.f"},
		{"camlStdlib__List__map_123", "Stdlib.List.map_123", "Stdlib.List.map"},
		{"camlStdlib__List.map_123", "Stdlib.List.map_123", "Stdlib.List.map"},
		{"camlStdlib__$40_12", "Stdlib.@_12", "Stdlib.@"},
		{"camlFoo__code_begin", "Foo.code_begin", "Foo.code_begin"},
		{"caml_alloc_shr", "caml_alloc_shr", "caml_alloc_shr"},
		{"camlCase", "camlCase", "camlCase"},
		{"__my_module_MOD_solve", "my_module::solve", "my_module::solve"},
		{"__Foo_MOD_bar", "__Foo_MOD_bar", "__Foo_MOD_bar"},
		{"MAIN__", "MAIN__", "MAIN__"},
		{"_ada_hello", "hello", "hello"},
		{"ada__text_io__put_line__2", "ada.text_io.put_line", "ada.text_io.put_line"},
		{"shapes___elabs", "shapes'Elab_Spec", "shapes'Elab_Spec"},
		// C's, which only Ada would read.
		{"uv__io_poll", "uv__io_poll", "uv__io_poll"},
		{"google__protobuf__message__init", "google__protobuf__message__init", "google__protobuf__message__init"},
		{"_D", "_D", "_D"},
		{"_D1", "_D1", "_D1"},
		{"_DYNAMIC", "_DYNAMIC", "_DYNAMIC"},
		{"_D3foo", "_D3foo", "_D3foo"},
		{"_D1aQc", "_D1aQc", "_D1aQc"},
	} {
		if got := spent(t, k.mangled, false); got != k.full {
			t.Errorf("%s: %s, want %s", k.mangled, got, k.full)
		}
		if got := spent(t, k.mangled, true); got != k.short {
			t.Errorf("%s in short: %s, want %s", k.mangled, got, k.short)
		}
	}
	if got := Ada("uv__io_poll"); got != "uv.io_poll" {
		t.Errorf("as Ada: %s", got)
	}
}

func TestTruncatedAndFlippedNamesOfDAndAdaAreHarmless(t *testing.T) {
	for _, p := range append(pairs(t, "testdata/dlang.txt")[:100], pairs(t, "testdata/gnat.txt")[:100]...) {
		for k := range len(p[0]) {
			spent(t, p[0][:k], false)
			flipped := []byte(p[0])
			flipped[k] ^= 1 << (k % 7)
			spent(t, string(flipped), k%2 == 0)
			Ada(string(flipped))
		}
	}
}

func FuzzFurtherLanguages(f *testing.F) {
	for _, p := range append(pairs(f, "testdata/dlang.txt")[:50], pairs(f, "testdata/gnat.txt")[:20]...) {
		f.Add(p[0])
	}
	f.Add("camlStdlib__$40_12")
	f.Add("__my_module_MOD_solve")
	f.Fuzz(func(t *testing.T, name string) {
		spent(t, name, false)
		spent(t, name, true)
		if got := Ada(name); len(got) > len(name)+8 || name != "" && got == "" {
			t.Errorf("%q is %q as Ada", name, got)
		}
	})
}
