package arguments

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A kindOfValue is a type that generated functions take and return.
type kindOfValue struct {
	name, decl string
	leaves     []string // what is printed of a value, behind its name; none for what isn't recorded
	bools      []string // those of leaves that are to be 0 or 1
	inMemory   bool     // as a result it is in memory
}

var ofC = []kindOfValue{
	{name: "char", leaves: []string{""}},
	{name: "signed char", leaves: []string{""}},
	{name: "unsigned char", leaves: []string{""}},
	{name: "_Bool", leaves: []string{""}, bools: []string{""}},
	{name: "short", leaves: []string{""}},
	{name: "unsigned short", leaves: []string{""}},
	{name: "int", leaves: []string{""}},
	{name: "unsigned", leaves: []string{""}},
	{name: "long", leaves: []string{""}},
	{name: "unsigned long", leaves: []string{""}},
	{name: "void *", leaves: []string{""}},
	{name: "enum color", decl: "enum color { RED, GREEN = 5, BLUE = -2 };", leaves: []string{""}},
	{name: "float", leaves: []string{""}},
	{name: "double", leaves: []string{""}},
	{name: "long double"},
	{name: "__int128"},
	{name: "unsigned __int128"},
	{name: "float _Complex"},
	{name: "double _Complex"},
	{name: "_Float16"},
	{name: "struct one", decl: "struct one { char c; };", leaves: []string{".c"}},
	{name: "struct three", decl: "struct three { short a; char b; };", leaves: []string{".a", ".b"}},
	{name: "struct twelve", decl: "struct twelve { int a, b, c; };", leaves: []string{".a", ".b", ".c"}},
	{name: "struct sixteen", decl: "struct sixteen { long a; int b; };", leaves: []string{".a", ".b"}},
	{name: "struct flag", decl: "struct flag { _Bool a; short b; double c; };", leaves: []string{".a", ".b", ".c"}, bools: []string{".a"}},
	{name: "struct seventeen", decl: "struct seventeen { char v[17]; };", leaves: []string{".v[3]", ".v[16]"}, inMemory: true},
	{name: "struct big", decl: "struct big { long a, b, c; };", leaves: []string{".a", ".b", ".c"}, inMemory: true},
	{name: "struct bits", decl: "struct bits { int a : 3, b : 29; int c; };", leaves: []string{".c"}},
	{name: "struct packed", decl: "struct __attribute__((packed)) packed { char a; long b; };", leaves: []string{".a"}},
	{name: "struct nothing", decl: "struct nothing {};"},
	{name: "union mixed", decl: "union mixed { long a; double b; };", leaves: []string{".a", ".b"}},
	{name: "struct f1", decl: "struct f1 { float a; };", leaves: []string{".a"}},
	{name: "struct f2", decl: "struct f2 { float a, b; };", leaves: []string{".a", ".b"}},
	{name: "struct d3", decl: "struct d3 { double a, b, c; };", leaves: []string{".a", ".b", ".c"}},
	{name: "struct d4", decl: "struct d4 { double v[4]; };", leaves: []string{".v[0]", ".v[3]"}},
	{name: "struct f5", decl: "struct f5 { float v[5]; };", leaves: []string{".v[0]", ".v[4]"}, inMemory: true},
	{name: "struct nested", decl: "struct nested { struct f2 in; float c; };", leaves: []string{".in.a", ".in.b", ".c"}},
	{name: "union floats", decl: "union floats { float a; float v[3]; };", leaves: []string{".a", ".v[2]"}},
	{name: "struct unlike", decl: "struct unlike { float a; double b; };", leaves: []string{".a", ".b"}},
	{name: "struct number", decl: "struct number { float a; int b; };", leaves: []string{".a", ".b"}},
	{name: "struct quads", decl: "struct quads { long double a, b; };"},
	{name: "struct wide", decl: "struct wide { __int128 a; };"},
	{name: "struct aligned", decl: "struct aligned { _Alignas(16) long a; long b; };", leaves: []string{".a", ".b"}},
	{name: "struct outer", decl: "struct __attribute__((aligned(16))) outer { long a, b; };", leaves: []string{".a", ".b"}},
	{name: "struct inside", decl: "struct inside { struct outer o; };", leaves: []string{".o.a", ".o.b"}},
	{name: "v8", decl: "typedef float v8 __attribute__((vector_size(8)));"},
	{name: "v16", decl: "typedef int v16 __attribute__((vector_size(16)));"},
	{name: "struct vectors", decl: "struct vectors { v16 a, b; };"},
}

var ofCXX = []kindOfValue{
	{name: "bool", leaves: []string{""}, bools: []string{""}},
	{name: "int", leaves: []string{""}},
	{name: "double", leaves: []string{""}},
	{name: "Plain", decl: "struct Plain { long a; int b; Plain(); int get() const; };", leaves: []string{".a", ".b"}},
	{name: "Copied", decl: "struct Copied { long a; Copied() {} Copied(const Copied &o) : a(o.a) {} };", leaves: []string{".a"}, inMemory: true},
	{name: "Ended", decl: "struct Ended { int a, b; ~Ended() { __asm__ volatile(\"\"); } };", leaves: []string{".a", ".b"}, inMemory: true},
	{name: "Holds", decl: "struct Holds { Copied c; float x; };", leaves: []string{".c.a", ".x"}, inMemory: true},
	{name: "Empty", decl: "struct Empty {};"},
	{name: "Base", decl: "struct Base { float x; };", leaves: []string{".x"}},
	{name: "Derived", decl: "struct Derived : Base { float y; };", leaves: []string{".x", ".y"}},
	{name: "OfEmpty", decl: "struct OfEmpty : Empty { double a, b; };", leaves: []string{".a", ".b"}},
	{name: "Member", decl: "struct Member { Empty e; float a; };", leaves: []string{".a"}},
	{name: "Virtual", decl: "struct Virtual { int a; virtual ~Virtual(); };", leaves: []string{".a"}, inMemory: true},
	{name: "Mode", decl: "enum class Mode : unsigned char { off, on = 7 };", leaves: []string{""}},
}

// A generated function takes and returns values of some types.
type generatedFunction struct {
	args   []kindOfValue
	result *kindOfValue
	more   bool // it takes others besides
}

func generate(rnd *rand.Rand, kinds []kindOfValue, n int, cxx bool) (list []generatedFunction) {
	for range n {
		var f generatedFunction
		// Few kinds in one function, so that registers run out in all ways.
		some := make([]kindOfValue, 1+rnd.IntN(5))
		for i := range some {
			some[i] = kinds[rnd.IntN(len(kinds))]
		}
		for range 1 + rnd.IntN(14) {
			f.args = append(f.args, some[rnd.IntN(len(some))])
		}
		if k := kinds[rnd.IntN(len(kinds))]; rnd.IntN(3) > 0 && k.name != "struct nothing" {
			f.result = &k
		}
		f.more = !cxx && rnd.IntN(4) == 0
		list = append(list, f)
	}
	return list
}

// source is the C or C++ of the functions and of what calls them.
func source(kinds []kindOfValue, list []generatedFunction, cxx bool) string {
	var b strings.Builder
	b.WriteString("#include \"aapcs64.h\"\n")
	for _, k := range kinds {
		b.WriteString(k.decl + "\n")
	}
	if cxx {
		b.WriteString("Plain::Plain() {}\nint Plain::get() const { return b; }\nvoid operator delete(void *, unsigned long) {}\nVirtual::~Virtual() {}\nextern \"C\" {\n")
	}
	for i, f := range list {
		result := "void"
		if f.result != nil {
			result = f.result.name
		}
		var params, given []string
		for k, a := range f.args {
			params = append(params, fmt.Sprintf("%s a%d", a.name, k))
			given = append(given, fmt.Sprintf("a%d", k))
		}
		if f.more {
			params = append(params, "...")
			given = append(given, "17", "2.5", "18L")
		}
		fmt.Fprintf(&b, "CALLED %s f%d(%s)\n{\n", result, i, strings.Join(params, ", "))
		for k, a := range f.args {
			show(&b, 'v', fmt.Sprintf("a%d", k), &a)
		}
		if f.result != nil {
			fmt.Fprintf(&b, "%s r;\n", result)
			filled(&b, "r", f.result)
			b.WriteString("return r;\n")
		}
		fmt.Fprintf(&b, "}\nstatic CALLED void call%d(void)\n{\n", i)
		for k, a := range f.args {
			fmt.Fprintf(&b, "%s a%d;\n", a.name, k)
			filled(&b, fmt.Sprintf("a%d", k), &a)
		}
		fmt.Fprintf(&b, "begin(\"f%d\", (void (*)(void))f%[1]d);\n", i)
		call := fmt.Sprintf("((__typeof__(f%d) *)through)(%s);\n", i, strings.Join(given, ", "))
		if f.result != nil {
			fmt.Fprintf(&b, "%s r = %s", result, call)
			show(&b, 'r', "r", f.result)
		} else {
			b.WriteString(call)
		}
		b.WriteString("end();\n}\n")
	}
	b.WriteString("void calls(void)\n{\n")
	for i := range list {
		fmt.Fprintf(&b, "call%d();\n", i)
	}
	b.WriteString("}\n")
	if cxx {
		b.WriteString("}\n")
	}
	return b.String()
}

func show(b *strings.Builder, kind byte, name string, k *kindOfValue) {
	for _, leaf := range k.leaves {
		fmt.Fprintf(b, "show('%c', \"%s%s\", (const void *)&%[2]s%[3]s, sizeof %[2]s%[3]s);\n", kind, name, leaf)
	}
}

func filled(b *strings.Builder, name string, k *kindOfValue) {
	if strings.HasPrefix(k.decl, "struct Virtual") { // its first word is the compiler's
		fmt.Fprintf(b, "fill(&%s.a, sizeof %[1]s.a);\n", name)
		return
	}
	fmt.Fprintf(b, "fill((void *)&%s, sizeof %[1]s);\n", name)
	for _, leaf := range k.bools {
		fmt.Fprintf(b, "*(u8 *)&%s%s &= 1;\n", name, leaf)
	}
}

// dumped is what was in registers and in memory when a function was called, and when it returned, as struct dump has it.
type dumped struct {
	x      []byte
	sp     uint64
	q      []byte
	stack  []byte
	rx, rq []byte
}

func readDump(b []byte) *dumped {
	return &dumped{x: b[:72], sp: binary.LittleEndian.Uint64(b[72:]), q: b[96:224], stack: b[224:4320], rx: b[4320:4336], rq: b[4336:4400]}
}

var errElsewhere = errors.New("it is elsewhere in memory")

// load loads what a stub would.
func (d *dumped) load(o *stub.Operand, atReturn bool) (uint64, error) {
	x, q := d.x, d.q
	if atReturn {
		x, q = d.rx, d.rq
	}
	var v uint64
	switch o.Origin {
	case stub.OriginVector:
		if int(o.Vector)*16+16 > len(q) {
			return 0, fmt.Errorf("vector register %d", o.Vector)
		}
		v = binary.LittleEndian.Uint64(q[16*int(o.Vector):])
	case stub.OriginStack:
		v = d.sp
	default:
		if int(o.Reg)*8+8 > len(x) {
			return 0, fmt.Errorf("register %d", o.Reg)
		}
		v = binary.LittleEndian.Uint64(x[8*int(o.Reg):])
	}
	look := func(off int32, size uint8) error {
		at := v + uint64(int64(off)) - d.sp
		if at > uint64(len(d.stack))-8 {
			return errElsewhere
		}
		v = binary.LittleEndian.Uint64(d.stack[at:])
		return nil
	}
	for _, p := range o.Path {
		if err := look(p, 8); err != nil {
			return 0, err
		}
	}
	if o.Memory {
		if err := look(o.Off, o.Size); err != nil {
			return 0, err
		}
	}
	return v >> (8 * o.Shift) & (1<<(8*uint(o.Size)) - 1), nil
}

// value is one that a program has printed.
type printed struct {
	name string
	bits uint64
	size int
}

type calledFunction struct {
	name         string
	args, result []printed
	dump         *dumped
}

// runs runs a program in the emulator and reads what it prints.
func runAAPCS(t *testing.T, path string) (list []calledFunction) {
	t.Helper()
	cmd := exec.Command(realtest.Tool(t, realtest.QEMUARM64), "-cpu", "max", path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%.300s", err, out)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	var f calledFunction
	for lines.Scan() {
		word := strings.Fields(lines.Text())
		if word[0] == "call" {
			f = calledFunction{name: word[1]}
			continue
		}
		b, err := hex.DecodeString(word[len(word)-1])
		if err != nil {
			t.Fatal(err)
		}
		if word[0] == "dump" {
			f.dump = readDump(b)
			list = append(list, f)
			continue
		}
		p := printed{name: word[1], size: len(b)}
		var eight [8]byte
		copy(eight[:], b)
		p.bits = binary.LittleEndian.Uint64(eight[:])
		if word[0] == "v" {
			f.args = append(f.args, p)
		} else {
			f.result = append(f.result, p)
		}
	}
	return list
}

// Where arguments and results are found is where the program itself has them: of generated functions of C and C++, by two compilers.
func TestAAPCS64IsWhatProgramsDo(t *testing.T) {
	for _, cxx := range []bool{false, true} {
		for _, by := range []struct {
			compiler realtest.Capability
			flags    []string
		}{
			{realtest.Clang, []string{"--target=aarch64-linux-gnu", "-fuse-ld=lld", "-O0"}},
			{realtest.Clang, []string{"--target=aarch64-linux-gnu", "-fuse-ld=lld", "-O2"}},
			{realtest.GCCARM64, []string{"-O0", "-Wno-psabi"}},
			{realtest.GCCARM64, []string{"-O2", "-Wno-psabi"}},
		} {
			language := map[bool]string{false: "C", true: "C++"}[cxx]
			t.Run(language+", "+string(by.compiler)+by.flags[len(by.flags)-1]+by.flags[0], func(t *testing.T) {
				realtest.Need(t, by.compiler, realtest.QEMUARM64)
				kinds, n := ofC, 300
				if cxx {
					kinds, n = ofCXX, 150
				}
				list := generate(rand.New(rand.NewPCG(5, 64)), kinds, n, cxx)
				path := buildAAPCS(t, by.compiler, by.flags, source(kinds, list, cxx), cxx)
				holdAgainst(t, path, list)
			})
		}
	}
}

// buildAAPCS builds a program.
func buildAAPCS(t *testing.T, by realtest.Capability, flags []string, text string, cxx bool) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := filepath.Abs("testdata")
	realtest.Must(t, err)
	generated, language := filepath.Join(dir, "generated"), "c"
	if cxx {
		language = "c++"
	}
	realtest.Must(t, os.WriteFile(generated, []byte(text), 0o600))
	common := []string{"-g", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-pie", "-I", folder, "-w"}
	object := filepath.Join(dir, "generated.o")
	more := []string{"-x", language}
	if cxx {
		more = append(more, "-fno-exceptions", "-fno-rtti", "-std=c++17")
	}
	tool := realtest.Tool(t, by)
	if cxx && by == realtest.GCCARM64 {
		tool = realtest.Tool(t, realtest.GXXARM64)
	}
	compile := func(tool string, args ...string) {
		if said, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.4000s", err, said)
		}
	}
	own := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return strings.HasPrefix(f, "-fuse-ld") })
	compile(tool, slices.Concat(own, common, more, []string{"-c", generated, "-o", object})...)
	path := filepath.Join(dir, "program")
	compile(realtest.Tool(t, by), slices.Concat(flags, common, []string{"-nostdlib", "-static", "-o", path, filepath.Join(folder, "aapcs64.c"), object})...)
	return path
}

// holdAgainst holds what is planned for a program's functions against what it prints.
func holdAgainst(t *testing.T, path string, list []generatedFunction) {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	d, err := Open(t.Context(), im, nil)
	realtest.Must(t, err)
	defer d.Close()
	symbols, err := im.FunctionSymbols()
	realtest.Must(t, err)
	values, elsewhere, inMemory, results, ofMemory := 0, 0, 0, 0, 0
	all := runAAPCS(t, path)
	if len(all) != len(list) {
		t.Fatalf("%d of %d functions called", len(all), len(list))
	}
	wrong := 0
	for i, f := range all {
		k := slices.IndexFunc(symbols, func(s object.Symbol) bool { return s.Name == f.name })
		if k < 0 {
			t.Fatalf("%s has no symbol", f.name)
		}
		s, err := d.Function(symbols[k].Addr, []string{f.name}, false)
		realtest.Must(t, err)
		describe := func() string {
			var all []string
			for _, a := range list[i].args {
				all = append(all, a.name)
			}
			return fmt.Sprintf("%s(%s)", f.name, strings.Join(all, ", "))
		}
		check := func(p printed, plan func(bool, []Expression) (*Plan, error), name string, atReturn bool) {
			e, err := ParseExpression(name)
			realtest.Must(t, err)
			planned, err := plan(false, []Expression{e})
			if err != nil {
				t.Errorf("%s: %v", describe(), err)
				wrong++
				return
			}
			if n := len(planned.Capture.Fields); n != 1 || planned.Capture.Fields[0].Kind != stub.FieldValue {
				t.Errorf("%s: %s is %+v", describe(), name, planned.Capture)
				return
			}
			o := &planned.Capture.Fields[0].Value
			got, err := f.dump.load(o, atReturn)
			switch {
			case errors.Is(err, errElsewhere):
				elsewhere++
			case err != nil, int(o.Size) != p.size, got != p.bits:
				t.Errorf("%s: %s is %#x by %+v, the program has %#x of %d bytes (%v)", describe(), name, got, *o, p.bits, p.size, err)
				wrong++
			}
			values++
			inMemory += btoi(o.Memory)
		}
		for _, p := range f.args {
			check(p, s.Entry, p.name, false)
		}
		if r := list[i].result; r != nil && r.inMemory {
			planned, err := s.Return(true, nil)
			if err != nil || len(planned.Capture.Fields) == 0 || !(&stub.Captures{Return: planned.Capture}).NotesResult() {
				t.Errorf("%s returns %s: %+v, %v", describe(), r.name, planned, err)
			}
			for _, p := range f.result {
				e, err := ParseExpression("return" + strings.TrimPrefix(p.name, "r"))
				realtest.Must(t, err)
				planned, err := s.Return(false, []Expression{e})
				if err != nil || len(planned.Capture.Fields) != 1 {
					t.Errorf("%s: %s: %+v, %v", describe(), p.name, planned, err)
					continue
				}
				if o := &planned.Capture.Fields[0].Value; o.Origin != stub.OriginResult || !o.Memory || int(o.Size) != p.size {
					t.Errorf("%s: %s is by %+v", describe(), p.name, *o)
				}
				ofMemory++
			}
		} else {
			for _, p := range f.result {
				results++
				check(p, s.Return, "return"+strings.TrimPrefix(p.name, "r"), true)
			}
		}
		if wrong > 20 {
			t.Fatal("and so on")
		}
	}
	t.Logf("%d values of %d calls, %d of them in memory, %d of results, and %d of results in memory; %d not looked at", values, len(all), inMemory, results, ofMemory, elsewhere)
	if values < 800 || inMemory < 100 || results < 50 || ofMemory < 10 || elsewhere > values/20 {
		t.Error("they are too few")
	}
}
