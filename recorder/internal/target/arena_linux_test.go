package target

import (
	"errors"
	"testing"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/refusal"
)

// Where user space ends without 5-level paging: TASK_SIZE_MAX of Linux on x86-64.
const userEnd = 1<<47 - 4096

// wantPlaced holds an arena's place against what must be true of all.
func wantPlaced(t *testing.T, a *Arena, maps []process.Mapping) {
	t.Helper()
	switch {
	case a.Base%PageSize != 0 || a.Base == 0:
		t.Errorf("at %#x", a.Base)
	case a.end() > userEnd:
		t.Errorf("it ends at %#x, beyond user space", a.end())
	case a.Base > a.Lo && a.end()-a.Lo >= 1<<31, a.Base < a.Lo && a.Hi-a.Base >= 1<<31:
		t.Errorf("at %#x it is out of reach of %#x to %#x", a.Base, a.Lo, a.Hi)
	}
	for _, m := range maps {
		if a.Base < m.End && a.end() > m.Start {
			t.Errorf("at %#x it overlaps %#x-%#x %s", a.Base, m.Start, m.End, m.Special)
		}
	}
}

// Without randomised addresses the libraries are right below the stack, and
// the stack at the end of user space. The gap above it belongs to the kernel.
func TestArenasAreNeverPlacedAboveUserSpace(t *testing.T) {
	libc := &mapped.Image{Path: "/lib/libc.so.6"}
	maps := []process.Mapping{
		{Start: 0x555555554000, End: 0x555555560000, Inode: 1, Path: "/bin/program"},
		{Start: 0x555555560000, End: 0x555555581000, Special: "[heap]"},
		{Start: 0x7ffff7c00000, End: 0x7ffff7e00000, Inode: 2, Path: "/lib/libc.so.6"},
		{Start: 0x7ffff7fc1000, End: 0x7ffff7fc5000, Special: "[vvar]"},
		{Start: 0x7ffff7fc5000, End: 0x7ffff7fc7000, Special: "[vdso]"},
		{Start: 0x7ffffffde000, End: 0x7ffffffff000, Special: "[stack]"},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Special: "[vsyscall]"},
	}
	for _, c := range []struct {
		name string
		size uint64
		maps []process.Mapping
	}{
		{"free below", 1 << 20, maps},
		{"large", reach / 8, maps},
		{"without vsyscall", 1 << 20, maps[:6]},
		// As with the stacks of many threads: hardly any room is left below.
		{"hardly any room below", 1 << 20, append([]process.Mapping{{Start: 0x7fff70000000, End: 0x7ffff7a00000}}, maps[2:]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Arena{Images: []*mapped.Image{libc}, Lo: 0x7ffff7c00000, Hi: 0x7ffff7e00000, Size: c.size}
			if err := a.place(c.maps, nil, growth); err != nil {
				t.Fatal(err)
			}
			wantPlaced(t, a, c.maps)
			// A second one keeps clear of the first.
			b := &Arena{Images: a.Images, Lo: a.Lo, Hi: a.Hi, Size: c.size}
			if err := b.place(c.maps, []*Arena{a}, growth); err != nil {
				t.Fatal(err)
			}
			wantPlaced(t, b, append([]process.Mapping{{Start: a.Base, End: a.end(), Special: "[the first]"}}, c.maps...))
		})
	}
}

// Everything within reach but what is above the stack is taken.
func TestAnArenaWithoutAPlaceIsRefused(t *testing.T) {
	maps := []process.Mapping{
		{Start: 0x7fff00000000, End: 0x7ffffffde000},
		{Start: 0x7ffffffde000, End: 0x7ffffffff000, Special: "[stack]"},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Special: "[vsyscall]"},
	}
	a := &Arena{Images: []*mapped.Image{{Path: "/lib/libc.so.6"}}, Lo: 0x7ffff7c00000, Hi: 0x7ffff7e00000, Size: 1 << 20}
	if err := a.place(maps, nil, growth); !errors.Is(err, refusal.Err) {
		t.Errorf("%v, base %#x", err, a.Base)
	}
}

// Where there is no other place the stack is left as much as its limit allows.
func TestAnArenaMayBeBelowAStackThatCantGrowMuch(t *testing.T) {
	const stack = 32 << 20
	maps := []process.Mapping{
		{Start: 0x7fff00000000, End: 0x7ffff7fd0000},
		{Start: 0x7ffffffde000, End: 0x7ffffffff000, Special: "[stack]"},
	}
	a := &Arena{Images: []*mapped.Image{{Path: "/lib/libc.so.6"}}, Lo: 0x7ffff7c00000, Hi: 0x7ffff7e00000, Size: 1 << 20}
	if err := a.place(maps, nil, stack); err != nil {
		t.Fatal(err)
	}
	wantPlaced(t, a, maps)
	if a.end() > maps[1].Start-stack {
		t.Errorf("it ends at %#x", a.end())
	}
}
