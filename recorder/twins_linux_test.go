package recorder_test

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
)

// What is promised of functions that are found: of those of a stripped program without FDEs so many, and so many of the found are real.
const (
	leastFound = 0.95
	leastReal  = 0.995
	// Where functions stand one behind the other without padding, those that only jumps lead to can't be told from parts of the one before;
	// here that is one in four.
	leastDense = 0.7
)

// twinFlags leave nothing in a program that tells where its functions are, but the code.
var twinFlags = []string{"-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-w"}

// manyFunctions writes a program of all kinds of functions that compilers treat differently.
func manyFunctions(n int) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("typedef unsigned long u; volatile u sink; u get(u); void stop(u) __attribute__((noreturn, noinline)); struct ops { u (*f)(u); u (*g)(u, u); };")
	p("u get(u x) { return sink + x; } void stop(u x) { sink = x; for (;;) ; }")
	for i := range n {
		p("static u __attribute__((noinline)) leaf%d(u x) { return x * %d + (x >> %d); }", i, 3+i, 1+i%7)
		p("static u __attribute__((noinline)) loop%d(u x) { u s = 0; for (u i = 0; i < x %% 9; i++) { s += leaf%d(i) ^ get(s); if (s == %d) stop(s); } return s; }", i, i, i)
		p("static u __attribute__((noinline)) sw%d(u x) { switch (x %% %d) {", i, 7+i%5)
		for k := range 7 + i%5 {
			p("case %d: %s", k, fmt.Sprintf([]string{"return leaf%[1]d(x);", "sink += %[2]d + %[1]d; break;", "x = get(x + %[2]d + %[1]d);", "return x ^ (%[2]d + %[1]d);", "if (x > 99 + %[1]d + %[2]d) stop(x); break;"}[(k+i)%5]+"/* %[1]d %[2]d */", i, k*k))
		}
		p("default: x += 3; } return x + loop%d(x); }", i)
		p("static u __attribute__((noinline)) tail%d(u x) { if (x & 1) return sw%d(x + 1); return loop%d(x * 5); }", i, i, i)
		p("static u hidden%d(u x) { char text[64]; for (u k = 0; k < 64; k++) text[k] = x >> k %% 8; sink = text[x %% 64]; return tail%d(x) + text[x %% 13]; }", i, i)
		p("static u two%d(u x, u y) { return x > y ? sw%d(x) : leaf%d(y) - x; }", i, i, i)
		p("const struct ops ops%d = { hidden%d, two%d };", i, i, i)
		p("u unused%d(u x) { if (x > 3) return get(x) + get(x + 1); sink = x; return loop%d(x + %d); }", i, i, i)
	}
	p("static const struct ops *const all[] = {")
	for i := range n {
		p("&ops%d,", i)
	}
	p("}; int main(int c, char **v) { u s = c; for (u i = 0; i < sizeof all / sizeof *all; i++) s += all[i]->f(s) + all[i]->g(s, i); return s == 42; }")
	return b.Bytes()
}

// twin is a program as it was built; what it has been stripped to is beside it.
func twin(t *testing.T, path string) (stripped string) {
	t.Helper()
	stripped = path + ".stripped"
	if out, err := exec.Command("strip", "-o", stripped, path).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	return stripped
}

// compareTwins holds what is found in the stripped twin against the symbols of the other.
func compareTwins(t *testing.T, whole, stripped string, least float64) {
	t.Helper()
	f, err := elf.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	real, cold := map[uint64]bool{}, map[uint64]bool{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value >= text.Addr && s.Value < text.Addr+text.Size {
			real[s.Value] = true
			if strings.HasSuffix(s.Name, ".cold") {
				cold[s.Value] = true
			}
		}
	}
	list, err := recorder.FunctionsOf(context.Background(), stripped, recorder.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	found, right, hit := 0, 0, 0
	known := map[uint64]bool{}
	for _, fn := range list.Functions {
		known[fn.Address] = true
		if fn.Found == "" {
			continue
		}
		found++
		if real[fn.Address] {
			right++
		} else {
			t.Logf("%s is no function (%s%s)", fn.Name, fn.Tier, fn.Reason)
		}
		if want := fmt.Sprintf("found_%#x", fn.Address); fn.Name != want {
			t.Errorf("it is called %s, want %s", fn.Name, want)
		}
	}
	want := 0
	for addr := range real {
		if !cold[addr] {
			want++
			if known[addr] {
				hit++
			}
		}
	}
	t.Logf("%d of %d functions, %d of %d found are real; %+v", hit, want, right, found, list.Images)
	if share := float64(hit) / float64(max(1, want)); want < 100 || share < least {
		t.Errorf("%d of %d functions are known (%.3f), want %.3f", hit, want, share, least)
	}
	if share := float64(right) / float64(max(1, found)); found == 0 || share < leastReal {
		t.Errorf("%d of %d that were found are real (%.4f), want %.4f", right, found, share, leastReal)
	}
	without, err := recorder.FunctionsOf(context.Background(), stripped, recorder.Choice{NoFound: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range without.Functions {
		if fn.Found != "" {
			t.Errorf("%s is there with NoFound", fn.Name)
		}
	}
	if c := &without.Images[0]; !c.Small() || c.Found != 0 {
		t.Errorf("without those that are found it is %+v", *c)
	}
	if c := &list.Images[0]; c.Small() || c.Share() < 0.7 {
		t.Errorf("with those that are found it is %+v", *c)
	}
}

func TestFunctionsOfAStrippedProgramAreFoundAsItsTwinHasThem(t *testing.T) {
	realtest.Need(t, realtest.Objcopy)
	for _, by := range []realtest.Capability{realtest.GCC, realtest.Clang} {
		for _, level := range []string{"-O0", "-O1", "-O2", "-O3", "-Os"} {
			for _, pie := range []string{"-pie", "-no-pie"} {
				t.Run(string(by)+level+pie, func(t *testing.T) {
					realtest.Need(t, by)
					folder := t.TempDir()
					source, whole := filepath.Join(folder, "many.c"), filepath.Join(folder, "many")
					if err := os.WriteFile(source, manyFunctions(60), 0o600); err != nil {
						t.Fatal(err)
					}
					args := append([]string{level, pie, "-o", whole, source}, twinFlags...)
					if pie == "-pie" {
						args = append(args, "-fPIE")
					} else {
						args = append(args, "-fno-pie")
					}
					if out, err := exec.Command(string(by), args...).CombinedOutput(); err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					least := leastFound
					if by == realtest.Clang && level == "-Os" {
						least = leastDense
					}
					compareTwins(t, whole, twin(t, whole), least)
				})
			}
		}
	}
}

// buildPascal builds the Pascal target, with its symbols or, as the compiler does by default, without.
func buildPascal(t *testing.T, symbols bool) string {
	t.Helper()
	realtest.Need(t, realtest.FreePascal)
	folder := t.TempDir()
	args := []string{"-O2", "-FE" + folder}
	if symbols {
		args = append(args, "-Xs-")
	}
	source := filepath.Join(realtest.Root(), "testdata", "targets", "pascal", "pascal.pas")
	if out, err := exec.Command("fpc", append(args, source)...).CombinedOutput(); err != nil {
		t.Fatalf("fpc: %v\n%s", err, out)
	}
	return filepath.Join(folder, "pascal")
}

func TestFunctionsOfAPascalProgramAreFoundAsItsTwinHasThem(t *testing.T) {
	compareTwins(t, buildPascal(t, true), buildPascal(t, false), leastFound)
}

// A stripped program without FDEs is recorded by what is found of it: each call of a function, and it comes to no harm.
func TestAStrippedProgramIsRecordedByWhatIsFound(t *testing.T) {
	needLive(t)
	realtest.Need(t, realtest.Objcopy)
	paths := map[string][2]string{}
	whole := realtest.Build(t, "count", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
	stripped := realtest.Build(t, "count", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-s")
	paths["C"] = [2]string{whole, stripped}
	if _, err := realtest.FreePascal.Find(); err == nil {
		paths["Pascal"] = [2]string{buildPascal(t, true), buildPascal(t, false)}
	}
	for language, of := range paths {
		t.Run(language, func(t *testing.T) {
			leaf := addressOf(t, of[0], "leaf")
			p := realtest.Start(t, of[1], "100000", "10000")
			cycle(t, p.Pid())
			r := realtest.StartRecording(t, append(pidFlag(p), "--lossless")...)
			p.Go()
			p.WaitLine("counted")
			s := stop(t, r)
			if s.Dropped != 0 {
				t.Errorf("%d dropped", s.Dropped)
			}
			rep := reportOf(t, r.File)
			calls := int64(0)
			for _, f := range rep.Functions {
				if strings.HasSuffix(f.Name, fmt.Sprintf("found_%#x", leaf)) || strings.HasPrefix(f.Name, "found_") && strings.HasSuffix(f.Name, fmt.Sprintf("%x", leaf&0xfff)) {
					calls += f.Calls
				}
			}
			if calls != 110000 {
				t.Errorf("%d calls of leaf at %#x, want 110000", calls, leaf)
			}
			wantUntouched(t, p.Pid())
			p.Go()
			if code := p.Wait(); code != 0 {
				t.Errorf("it ended with %d", code)
			}
		})
	}
}

// addressOf is the link address of the function whose name has the word in it, whatever its case.
func addressOf(t *testing.T, path, word string) uint64 {
	t.Helper()
	return realtest.FunctionAddress(t, path, func(name string) bool {
		name = strings.ToLower(name)
		return name == word || strings.HasPrefix(name, "p$") && strings.Contains(name, "_$$_"+word)
	})
}
