package object

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// slotsOf are the slots of an image as readelf -rW shows them: the place, and the name with its version.
func slotsOf(t *testing.T, i *Image) (list []string) {
	t.Helper()
	if err := i.VisitSlots(func(s *Slot) bool {
		name := s.Symbol.Name
		if s.Symbol.Version != "" {
			name += "@" + s.Symbol.Version
		}
		list = append(list, fmt.Sprintf("%x %s %s", s.Offset, s.Kind, name))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// Slots are those that readelf shows, by the sections and without them.
func TestSlotsAreThoseOfReadelf(t *testing.T) {
	kinds := map[string]string{
		"R_X86_64_JUMP_SLO": "jump", "R_X86_64_JUMP_SLOT": "jump", "R_X86_64_GLOB_DAT": "data", "R_X86_64_64": "word",
		"R_AARCH64_JUMP_SL": "jump", "R_AARCH64_JUMP_SLOT": "jump", "R_AARCH64_GLOB_DA": "data", "R_AARCH64_GLOB_DAT": "data", "R_AARCH64_ABS64": "word",
	}
	source := "extern int puts(const char *), rename(const char *, const char *); extern char **environ; void *pointer = puts;\n" +
		"int own(void) { return 1; } int f(void) { return puts(\"x\") + own() + (environ != 0); } void *g(void) { return rename; }\n"
	file := filepath.Join(t.TempDir(), "slots.c")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"-Wl,-z,now"}, {"-fno-plt"}} {
		lib := filepath.Join(t.TempDir(), "slots.so")
		run(t, "gcc", slices.Concat([]string{"-O1", "-fPIC", "-shared", "-o", lib}, flags, []string{file})...)
		var want []string
		for line := range strings.Lines(run(t, "readelf", "-rW", lib)) {
			f := strings.Fields(line)
			if len(f) < 5 || kinds[f[2]] == "" {
				continue
			}
			want = append(want, fmt.Sprintf("%s %s %s", strings.TrimLeft(f[0], "0"), kinds[f[2]], f[4]))
		}
		slices.Sort(want)
		data := read(t, lib)
		i, err := Parse(lib, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := slotsOf(t, i); !slices.Equal(got, want) || len(want) < 4 {
			t.Errorf("%q:\n%s\nwant\n%s", flags, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		clear(data[40:48]) // e_shoff
		clear(data[58:64]) // e_shentsize, e_shnum, e_shstrndx
		if i, err = Parse(lib, data); err != nil {
			t.Fatal(err)
		}
		if got := slotsOf(t, i); !slices.Equal(got, want) {
			t.Errorf("%q, without sections:\n%s\nwant\n%s", flags, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
