package target

import (
	"testing"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

// Without randomised addresses the heap is right behind the program, and 1 GiB above it is out of reach: the arena leaves it all that reach allows,
// and none is placed where that is too little.
func TestAnArenaMayBeAboveAHeapThatIsNear(t *testing.T) {
	for size, placed := range map[uint64]bool{6 << 20: true, 96 << 20: false} {
		maps := []process.Mapping{
			{Start: 0x400000, End: 0x9b0000, Inode: 1, Path: "/usr/bin/python3.11"},
			{Start: 0x9b0000, End: 0xc00000, Special: "[heap]"},
			{Start: 0xfffff7c00000, End: 0xfffff7e00000, Inode: 2, Path: "/lib/libc.so.6"},
			{Start: 0xfffffffdf000, End: 0x1000000000000, Special: "[stack]"},
		}
		a := &Arena{Images: []*mapped.Image{{Path: "/usr/bin/python3.11"}}, Lo: 0x400000, Hi: 0x9b0000, Size: size}
		err := a.place(maps, nil, growth)
		switch {
		case (err == nil) != placed:
			t.Errorf("%d bytes: %v", size, err)
		case err == nil && (a.Base < 0xc00000+leastHeap || a.end() > a.Lo+reach || a.end() < a.Lo+reach-1<<20):
			t.Errorf("%d bytes at %#x", size, a.Base)
		}
	}
}
