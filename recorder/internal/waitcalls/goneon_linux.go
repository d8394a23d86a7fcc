package waitcalls

import (
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

const (
	maxGoneOn = 512 // bytes of a function that goes on in another
	goneTwice = 2
)

// goneOn are functions, by their link addresses, that others of a library end in by a jump, with the same first argument, and that do the work
// then: glibc's pthread_mutex_unlock and sem_wait have such, which have names in debug symbols only.
func goneOn(im *mapped.Image) map[uint64]Call {
	found := map[uint64]Call{}
	type place struct {
		addr, size uint64
		call       Call
	}
	var look []place
	sizes := map[uint64]uint64{}
	for i := range im.Plan {
		f := &im.Plan[i]
		sizes[f.Addr] = f.Size
		if call, ok := Of(f.Names()); ok && !call.Descriptor && !call.Second {
			look = append(look, place{f.Addr, f.Size, call})
		}
	}
	jumps := jumpsOnAMD64
	if im.Object.Arch == object.ARM64 {
		jumps = jumpsOnARM64
	}
	for range goneTwice {
		var next []place
		for _, p := range look {
			for _, to := range jumps(p.addr, im.Probe.Code(p.addr, int(min(p.size, maxGoneOn)))) {
				if _, known := found[to]; known || sizes[to] == 0 {
					continue
				}
				found[to] = p.call
				next = append(next, place{to, sizes[to], p.call})
			}
		}
		look = next
	}
	return found
}
