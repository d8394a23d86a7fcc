package symbols

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// The object files of a debug map say what dsymutil makes of them.
func TestObjectFilesOfADebugMapAreThoseOfItsDSYM(t *testing.T) {
	for _, target := range []string{"arm64-apple-macos11", "x86_64-apple-macos10.15"} {
		for _, archived := range []bool{false, true} {
			arch, _, _ := strings.Cut(target, "-")
			name := arch
			if archived {
				name += " in an archive"
			}
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				write(t, filepath.Join(dir, "h.h"), `static inline int twice(int x) { return x + x; }
static inline int thrice(int x) { return twice(x) + x; }
`)
				write(t, filepath.Join(dir, "a.c"), `#include "h.h"
__attribute__((noinline)) int deep(int n) { int s = 0; for (int k = 0; k < n; k++) s ^= thrice(k); return s; }
__attribute__((noinline)) int unused(int n) { return n * deep(n); }
int entry(int n) { return deep(n) + deep(twice(n)); }
`)
				write(t, filepath.Join(dir, "b.cc"), `#include "h.h"
extern "C" int entry(int n);
namespace shapes { struct square { int side; __attribute__((noinline)) int area() const { return thrice(side) * side; } }; }
int volume(int n) { shapes::square s = {n}; return s.area() + entry(n); }
`)
				clang := func(out, in string, flags ...string) {
					run(t, dir, nil, append([]string{realtest.Tool(t, realtest.Clang), "-target", target, "-g", "-O1", "-ffreestanding", "-nostdinc", "-fno-exceptions", "-c", in, "-o", out}, flags...)...)
				}
				clang("a.o", "a.c")
				clang("b.o", "b.cc", "-gdwarf-4")
				inputs := []string{"a.o", "b.o"}
				if archived {
					run(t, dir, nil, filepath.Join(filepath.Dir(realtest.Tool(t, realtest.LLVMObjcopy)), "llvm-ar-19"), "--format=darwin", "rcU", "liball.a", "a.o", "b.o")
					inputs = []string{"-all_load", "liball.a"}
				}
				run(t, dir, nil, append([]string{realtest.Tool(t, realtest.LD64), "-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-dylib",
					"-undefined", "dynamic_lookup", "-install_name", "@rpath/libt.dylib", "-o", "libt.dylib"}, inputs...)...)
				path := filepath.Join(dir, "libt.dylib")
				ours := mapOf(t, path, BuildOptions{Search: true})
				run(t, dir, nil, realtest.Tool(t, realtest.Dsymutil), "libt.dylib")
				theirs := mapOf(t, path, BuildOptions{Search: true})
				if !ours.HasDWARF() || !theirs.HasDWARF() {
					t.Fatal("no DWARF was found")
				}
				inlined := 0
				addrs := functionAddresses(theirs, 1000)
				for _, addr := range addrs {
					want, got := show(theirs.Lookup(addr, nil)), show(ours.Lookup(addr, nil))
					if got != want {
						t.Errorf("%#x: %s, by the dSYM: %s", addr, got, want)
					}
					if strings.Contains(got, " < ") {
						inlined++
					}
				}
				if len(addrs) < 40 || inlined == 0 {
					t.Errorf("%d addresses, %d in inlined calls", len(addrs), inlined)
				}
				// Without one of them the rest stays, and it is told.
				if err := os.RemoveAll(filepath.Join(dir, "libt.dylib.dSYM")); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(filepath.Join(dir, inputs[len(inputs)-1])); err != nil {
					t.Fatal(err)
				}
				m, stats, err := BuildMap(t.Context(), image(t, path), BuildOptions{Search: true})
				if err != nil || len(stats.Missing) == 0 || m.HasDWARF() == archived || !strings.Contains(stats.Missing[0].Error(), inputs[len(inputs)-1]) {
					t.Errorf("%v, missing %v", err, stats)
				}
			})
		}
	}
}
