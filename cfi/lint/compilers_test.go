package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// cSource has functions of every kind that makes compilers do something else to the stack.
const cSource = `
#include <stdarg.h>
#include <setjmp.h>
#include <alloca.h>
extern int ext(void *, ...);
extern void stop(const char *) __attribute__((noreturn));
struct big { char b[300]; };
int leaf(int a, int b) { return a * b + 3; }
int calls(int a, int b, int c) { int r = ext(&a, b); return ext(&r, c) + a * b; }
int many(int a, int b, int c, int d, int e, int f, int g, int h) {
	int x[8] = {a, b, c, d, e, f, g, h};
	for (int i = 0; i < 8; i++) x[i] = ext(x, i, a, b, c, d, e, f, g, h);
	return x[a & 7] + b;
}
int alloc(int n) { char *p = alloca(n); ext(p, n); return p[n / 2]; }
int vla(int n, int m) { int s = 0; for (int i = 0; i < n; i++) { int x[i + m]; ext(x, i); s += x[i]; } return s; }
int aligned(int n) { _Alignas(64) char b[128]; ext(b, n); return b[n]; }
int both(int n) { _Alignas(64) char b[128]; char *p = alloca(n); ext(b, p); return b[n] + p[n]; }
int large(int n) { char b[200000]; ext(b, n); return b[n]; }
int variable(int n, ...) {
	va_list ap; va_start(ap, n); int s = 0;
	while (n--) s += va_arg(ap, int);
	va_end(ap); ext(&s); return s;
}
int table(int k, int a) {
	switch (k) {
	case 0: return ext(&a, 1);
	case 1: ext(&a, 2); return 7;
	case 2: return a / 3;
	case 3: stop("three");
	case 4: a = ext(&k, 4); break;
	case 5: a += ext(&k, 5, 6, 7, 8, 9, 10, 11); break;
	case 6: return ext(&k) + ext(&a);
	case 7: a ^= 77; break;
	default: a = 5;
	}
	return a + ext(&k);
}
int wrapped(int a, int b) { if (a) return b; int x = ext(&b, a), y = ext(&x, b); if (x > y) stop("wrapped"); return ext(&y, x) * x + y; }
double floats(double a, double b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a * ext(&s, i) + b; return s; }
int jumps(jmp_buf b, int n) { if (setjmp(b)) return n; ext(b, n); return ext(&n); }
struct big by_value(struct big x, int n) { x.b[n] = ext(&x, n); return x; }
int fat(struct big x) { return ext(&x, x); }
int (*pointer)(int, int);
int tail(int a, int b) { ext(&a); return pointer(a, b); }
void *computed(int k, int n) {
	static void *t[] = {&&a, &&b, &&c};
	goto *t[k];
a:	ext(&k, n); k++;
b:	ext(&n, k); goto *t[n];
c:	return &pointer;
}
`

const cxxSource = `
#include <stdexcept>
#include <string>
#include <vector>
extern "C" int ext(void *, ...);
struct guard { int v; ~guard(); };
int throwing(int n) { guard g{n}; if (ext(&g, n)) throw std::runtime_error("no " + std::to_string(n)); return g.v; }
int catching(int n) {
	guard g{n};
	try { return throwing(n) + ext(&n); }
	catch (const std::runtime_error &e) { guard h{3}; return ext(&h, e.what()); }
	catch (...) { ext(&g); throw; }
}
std::string building(std::vector<std::string> v) { std::string s; for (auto &x : v) { guard g{1}; s += x + "," + std::to_string(ext(&g)); } return s; }
int (*volatile fp)(int);
int nested(int n) { try { try { fp(n); } catch (int k) { guard g{k}; return fp(k); } } catch (long) { return 9; } return n; }
`

// build makes a shared library without start files, whose functions have no call frame information.
func build(t testing.TB, c realtest.Capability, source, suffix string, flags ...string) string {
	t.Helper()
	path, err := c.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"+suffix), filepath.Join(dir, "out.so")
	if err := os.WriteFile(in, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-nostartfiles", "-nostdlib", "-w", "-o", out, in}, flags...)
	if said, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", path, strings.Join(args, " "), err, said)
	}
	return out
}

// check lints a file.
func checkFile(t testing.TB, path string) *Result {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	r, err := Check(im)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCompilersOutputHasNoFindings(t *testing.T) {
	for _, c := range []realtest.Capability{realtest.GCC, realtest.Clang} {
		for _, flags := range []string{
			"-O0", "-O1", "-O2", "-O3 -mavx2", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -fstack-clash-protection",
			"-O2 -mstackrealign", "-O2 -fno-asynchronous-unwind-tables -funwind-tables", "-O2 -fcf-protection=full -fstack-protector-all",
			"-O2 -fno-plt -Wl,-z,now", "-O2 -Wl,--strip-all",
		} {
			t.Run(string(c)+" "+flags, func(t *testing.T) {
				t.Parallel()
				realtest.Need(t, realtest.AMD64, c)
				sources := map[string]string{".c": cSource}
				if strings.HasPrefix(flags, "-O2 -f") || flags == "-O0" { // the headers of C++ take long
					sources[".cc"] = cxxSource
				}
				for suffix, source := range sources {
					r := checkFile(t, build(t, c, source, suffix, strings.Fields(flags)...))
					if !r.CodeFollowed || r.Synchronous || r.FDEs < 6 {
						t.Errorf("%s: %+v", suffix, r)
					}
					for _, f := range r.Findings {
						t.Errorf("%s: %+v", suffix, f)
					}
				}
			})
		}
	}
}

// TestSystemLibrariesHaveNoFalseFindings knows of glibc's own two errors: functions of arithmetic written in assembly push
// two registers without a directive.
func TestSystemLibrariesHaveNoFalseFindings(t *testing.T) {
	for _, name := range []string{"libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"} {
		for _, f := range checkFile(t, library(t, name)).Findings {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, f := range checkFile(t, library(t, "libc.so.6")).Findings {
		if f.Kind != WrongCFA || f.Says != "cfa=rsp+8" || f.Truth != "cfa=rsp+16" && f.Truth != "cfa=rsp+24" {
			t.Errorf("libc.so.6: %+v", f)
		}
	}
}

// TestEpiloguesLeftOutThroughoutAreNoErrors takes what clang makes for Apple, whose unwinder never looks at epilogues.
func TestEpiloguesLeftOutThroughoutAreNoErrors(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.LLVMObjcopy)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	source := strings.NewReplacer("#include <setjmp.h>", "typedef int jmp_buf[64]; int setjmp(jmp_buf);", "#include <alloca.h>", "#define alloca __builtin_alloca").Replace(cSource)
	if err := os.WriteFile(path("in.c"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"clang-19 -target x86_64-apple-macos10.15 -O2 -fomit-frame-pointer -femit-dwarf-unwind=always -fexceptions -w -ffreestanding -c in.c -o in.o",
		"llvm-objcopy-19 --remove-section __LD,__compact_unwind in.o bare.o",
		"ld64.lld-19 -arch x86_64 -platform_version macos 10.15 10.15 -dylib -undefined dynamic_lookup -o out.dylib bare.o",
	} {
		words := strings.Fields(line)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, said)
		}
	}
	r := checkFile(t, path("out.dylib"))
	if !r.CodeFollowed || !r.Synchronous {
		t.Errorf("%+v", r)
	}
	for _, f := range r.Findings {
		if f.Kind != NoCFI { // of the leaf, which needs none
			t.Errorf("%+v", f)
		}
	}
}
