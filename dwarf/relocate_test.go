package dwarf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// relocatables are built with -c, and linked to be compared.
var relocatables = []struct {
	by            realtest.Capability
	source, flags string
	link          string
}{
	{realtest.GCC, "nest.c", "-O2 -g -fPIC -DFREESTANDING", "-shared -nostdlib"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-4 -fPIC -DFREESTANDING -ffunction-sections", "-shared -nostdlib"},
	{realtest.GCC, "nest.c", "-O2 -g -gz=zlib -fPIC -DFREESTANDING", "-shared -nostdlib"},
	{realtest.GCC, "nest.c", "-O2 -g -m32 -fPIC -DFREESTANDING", "-shared -nostdlib"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-3 -m32 -fPIC -DFREESTANDING", "-shared -nostdlib"},
	{realtest.GXX, "shapes.cc", "-O2 -g -fPIC", "-shared"},
	{realtest.GXX, "shapes.cc", "-O2 -g -fPIC -fdebug-types-section", "-shared"},
	{realtest.Clang, "shapes.cc", "-O2 -g -fPIC", "-shared"},
	{realtest.Clang, "nest.c", "-O2 -g -target aarch64-linux-gnu -fPIC -DFREESTANDING", "-shared -nostdlib -fuse-ld=lld"},
	{realtest.Clang, "nest.c", "-O2 -g -target armv7-linux-gnueabi -fPIC -DFREESTANDING", "-shared -nostdlib -fuse-ld=lld"},
	{realtest.Clang, "nest.c", "-O2 -g -target s390x-linux-gnu -fPIC -DFREESTANDING", "-shared -nostdlib -fuse-ld=lld"},
	{realtest.Clang, "nest.c", "-O2 -g -target powerpc64-linux-gnu -mabi=elfv2 -fPIC -DFREESTANDING", "-shared -nostdlib -fuse-ld=lld"},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4 -target powerpc-linux-gnu -fPIC -DFREESTANDING", "-shared -nostdlib -fuse-ld=lld"},
}

func TestRelocatableFilesSayWhatTheLinkedOnesSay(t *testing.T) {
	for _, b := range relocatables {
		t.Run(string(b.by)+" "+b.source+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			flags := strings.Fields(b.flags)
			path := build(t, b.by, b.source, append(flags, "-c")...)
			d := openData(t, path, Options{})
			got := list(t, d)
			want := list(t, openData(t, build(t, b.by, b.source, append(flags, strings.Fields(b.link)...)...), Options{}))
			a, w := byFunction(got), byFunction(want)
			if len(w) == 0 || !slices.Equal(a, w) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(a, "\n"), strings.Join(w, "\n"))
			}
			placesAgree(t, d, got)
		})
	}
}

// byFunction writes each function down as seen from its start: where sections lie
// is the linker's business.
func byFunction(l *listing) []string {
	var all []string
	for _, f := range l.functions {
		var s strings.Builder
		fmt.Fprintf(&s, "%s declared at %s", f.name, f.decl)
		base := f.ranges[0].Low
		offsets := func(ranges []Range) {
			for _, r := range ranges {
				// A cold part is in another section.
				if r.Low-base < 1<<12 && len(f.ranges) == 1 {
					fmt.Fprintf(&s, " +%d", r.Low-base)
				}
				fmt.Fprintf(&s, " %d bytes", r.High-r.Low)
			}
		}
		sizes := slices.Clone(f.ranges)
		slices.SortFunc(sizes, func(a, b Range) int { return cmp.Compare(a.High-a.Low, b.High-b.Low) })
		for _, r := range sizes {
			fmt.Fprintf(&s, " %d bytes", r.High-r.Low)
		}
		for _, call := range f.inlines {
			fmt.Fprintf(&s, "\n\t%d %s from %s", call.depth, call.name, call.call)
			if len(f.ranges) == 1 {
				offsets(call.ranges)
			}
		}
		for _, r := range f.ranges {
			if len(f.ranges) > 1 {
				break
			}
			text := ""
			for _, row := range l.rows {
				if row.addr > r.Low && text != "" && row.addr < r.High {
					fmt.Fprintf(&s, "\n\t+%d %s", row.addr-r.Low, row.text)
				}
				if row.addr <= r.Low {
					text = row.text
				}
			}
			fmt.Fprintf(&s, "\n\tstarts at %s", text)
		}
		all = append(all, s.String())
	}
	slices.Sort(all)
	return all
}

// placesAgree checks the functions' starts against the symbol table.
func placesAgree(t *testing.T, d *Data, l *listing) {
	t.Helper()
	symbols, err := d.image.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	starts := make(map[uint64]bool)
	text := slices.IndexFunc(d.image.Sections(), func(s object.Section) bool { return s.Name == ".text" })
	if at, ok := d.Place(text); at != 0 || !ok {
		t.Errorf(".text is at %#x", at)
	}
	for _, s := range symbols {
		if s.Kind != object.Func || !s.Defined() {
			continue
		}
		at, ok := d.Place(int(s.Section))
		if !ok {
			continue // function descriptors, which are data
		}
		starts[at+s.Addr&^thumb(d.image)] = true
	}
	for _, f := range l.functions {
		for _, r := range f.ranges {
			if !starts[r.Low] {
				t.Errorf("%s: no symbol at %#x", f.name, r.Low)
			}
		}
	}
	for k, f := range l.functions {
		if k > 0 && f.ranges[0].Low < l.functions[k-1].ranges[0].High {
			t.Errorf("%s and %s overlap", f.name, l.functions[k-1].name)
		}
	}
}

// thumb is the bit that tells instruction sets apart in symbols.
func thumb(im *object.Image) uint64 {
	if im.Arch == object.ARM {
		return 1
	}
	return 0
}

func TestRelocationsThatAreNotKnownAreTold(t *testing.T) {
	path := build(t, realtest.Clang, "nest.c", strings.Fields("-O2 -g -target riscv64-linux-gnu -DFREESTANDING -c")...)
	d, err := Open(t.Context(), openImage(t, path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	problems := d.Problems()
	if len(problems) == 0 || !strings.Contains(problems[0].Error(), path) || !strings.Contains(problems[0].Error(), "relocations of machine 243 are not known") {
		t.Errorf("problems %v", problems)
	}
}
