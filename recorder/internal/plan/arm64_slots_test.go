package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// callsImports calls functions of others, whose slots it uses in all ways that there are.
const callsImports = `
typedef unsigned long u64;
extern int called(int), called_twice(int), tail(int), passed(int), tested(int) __attribute__((weak)), kept(int), looped(int), both(int), by_table(int);
extern void take(int (*)(int)), nothing(void);
int (*global)(int);
int one(int a) { return called(a) + called_twice(a); }
int two(int a) { nothing(); return tail(a * 2); }
int three(int a) { take(passed); return called_twice(a) - 1; }
int four(int a) { if (tested) return tested(a) + 1; return 0; }
int five(int a) { global = kept; return a; }
int six(int n, int *list) { int s = 0; for (int i = 0; i < n; i++) { s += looped(list[i]); nothing(); } return s; }
int seven(int a) { int (*f)(int) = a ? both : one; nothing(); return f(a) + both(a); }
int eight(int k, int a) {
	int (*f)(int) = by_table;
	switch (k) {
	case 0: nothing(); return f(a) + 1;
	case 1: return f(a) * 3;
	case 2: nothing(); nothing(); return f(a + 9);
	case 3: return a + 4;
	case 4: nothing(); return f(a) ^ 5;
	case 5: return f(a) << 6;
	}
	return 7;
}
`

// slotsOfARM64 builds it, and returns the slots of its functions by name; there may be one by which it calls, and one by which it takes the address.
func slotsOfARM64(t *testing.T, flags ...string) (im *Image, slots map[string][]Slot) {
	t.Helper()
	dir := t.TempDir()
	source, path := filepath.Join(dir, "calls.c"), filepath.Join(dir, "libcalls.so")
	if err := os.WriteFile(source, []byte(callsImports), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--target=aarch64-linux-gnu", "-nostdlib", "-shared", "-fPIC", "-fuse-ld=lld", "-o", path, source}, flags...)
	if said, err := exec.Command(realtest.Tool(t, realtest.Clang), args...).CombinedOutput(); err != nil {
		realtest.NeedThat(t, "clang and lld for arm64: "+string(said), err)
	}
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	if im, err = NewImage(o, "libcalls.so"); err != nil {
		t.Fatal(err)
	}
	name := map[uint64]string{}
	if err := o.VisitSlots(func(s *object.Slot) bool {
		if s.Kind != object.SlotWord {
			im.Slots = append(im.Slots, s.Offset)
			name[s.Offset] = s.Symbol.Name
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(im.Slots)
	if _, err := im.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	slots = map[string][]Slot{}
	for _, s := range im.Slotted {
		slots[name[s.Addr]] = append(slots[name[s.Addr]], s)
	}
	return im, slots
}

// Calls by the PLT can be recorded, with their ends; what reads a slot keeps it from being.
func TestSlotsOfARM64AreCalledOrTaken(t *testing.T) {
	for _, flags := range [][]string{{"-O2"}, {"-O0"}, {"-Os", "-Wl,-z,now"}, {"-O2", "-mbranch-protection=standard", "-Wl,-z,force-bti"}} {
		im, slots := slotsOfARM64(t, flags...)
		calls := map[string]int{"called": 1, "called_twice": 2, "nothing": 7, "take": 1}
		if flags[0] == "-O0" {
			calls["tail"] = 1
		}
		for name, want := range calls {
			ends := want
			if name == "nothing" { // behind one call is another one, which can't be moved
				ends--
			}
			list := slots[name]
			if len(list) != 1 || list[0].Taken != 0 || !list[0].Used || list[0].Calls != want || len(list[0].Returns) != ends || list[0].Entry == 0 {
				t.Errorf("%v: %s: %+v, want %d calls", flags, name, list, want)
			}
			for _, s := range list {
				for _, k := range s.Returns {
					if m := &im.Marked[k]; !m.Return || len(m.Alone.Sites) != 1 || m.Alone.Sites[0].Addr != m.Addr {
						t.Errorf("%v: %s: a call returns to %+v", flags, name, m)
					}
				}
			}
		}
		if s := slots["tail"]; len(s) != 1 || !s[0].Used || s[0].Taken != 0 {
			t.Errorf("%v: tail: %+v", flags, s)
		}
		for _, name := range []string{"passed", "kept", "both", "tested"} {
			if !slices.ContainsFunc(slots[name], func(s Slot) bool { return s.Taken != 0 }) {
				t.Errorf("%v: nothing takes the address of %s: %+v", flags, name, slots[name])
			}
		}
	}
}

// Without a PLT a slot is read, and what is read could be kept.
func TestSlotsOfARM64AreNotCalledWithoutAPLT(t *testing.T) {
	_, slots := slotsOfARM64(t, "-O2", "-fno-plt")
	for name, list := range slots {
		for _, s := range list {
			if s.Used && s.Taken == 0 {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}
