package plan

import (
	"debug/elf"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// callsInListing are the targets of direct calls, as objdump prints them.
var (
	callsInListing   = regexp.MustCompile(`(?m)\b(?:call|bl)\s+([0-9a-f]+)`)
	syscallInListing = regexp.MustCompile(`(?m)\b(?:syscall|svc)\b`)
)

// aroundSyscall returns what a function of a library calls, as objdump lists it.
func aroundSyscall(t *testing.T, path, name string) []uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name && s.Section != elf.SHN_UNDEF })
	if i < 0 {
		t.Fatalf("%s has no %s", path, name)
	}
	from, to := symbols[i].Value, symbols[i].Value+symbols[i].Size
	out, err := exec.Command("objdump", "-d", "-w", "--no-show-raw-insn", fmt.Sprintf("--start-address=%#x", from), fmt.Sprintf("--stop-address=%#x", to), path).Output()
	realtest.NeedThat(t, "objdump", err)
	if !syscallInListing.Match(out) {
		t.Skipf("%s of this C library makes no system call by itself, so threads are cancelled in another way", name)
	}
	called := map[uint64]bool{}
	for _, m := range callsInListing.FindAllSubmatch(out, -1) {
		addr, err := strconv.ParseUint(string(m[1]), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		called[addr] = true
	}
	return slices.Sorted(maps.Keys(called))
}

// The two functions that read and write call around their system call are left
// alone, and no others.
func TestExactlyTheFunctionsThatSwitchCancellationAreRefused(t *testing.T) {
	im := realImage(t, "libc")
	path := testimage.Path(t, "libc")
	realtest.Need(t, realtest.Objdump)
	want := aroundSyscall(t, path, "read")
	if other := aroundSyscall(t, path, "write"); !slices.Equal(want, other) {
		t.Fatalf("read calls %#x and write %#x", want, other)
	}
	if len(want) != 2 {
		t.Skipf("read of this C library calls %#x, so threads are cancelled in another way", want)
	}
	var got []uint64
	fns := planImage(t, im)
	for i := range fns {
		if fns[i].Reason == ReasonCancellation {
			got = append(got, fns[i].Addr)
			if fns[i].Tier != TierNone || len(fns[i].Sites) != 0 {
				t.Errorf("%s is refused, and has tier %v and %d sites", fns[i].Name, fns[i].Tier, len(fns[i].Sites))
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("refused because of cancellation: %#x, want %#x", got, want)
	}
}

// What makes no such calls has no such functions.
func TestOtherImagesHaveNoFunctionsOfCancellation(t *testing.T) {
	fns := planImage(t, realImage(t, "libstdc++"))
	if n := shares(fns)[ReasonCancellation]; n != 0 {
		t.Errorf("%d functions of libstdc++ are refused because of cancellation", n)
	}
}
