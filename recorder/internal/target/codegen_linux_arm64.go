package target

import (
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub/arm64"
)

func generator() codegen { return arm64.Generator{} }

// reach is how far an arena may be from the far end of its images: what B has bits for, with some spare.
const reach = 1<<27 - 1<<20

// leastHeap is what a heap must have to grow into where nothing farther away is in reach: without randomisation of addresses it begins right behind
// the program. An allocator whose brk fails maps memory instead, as glibc's and musl's do.
const leastHeap = 32 << 20

// together is how far images of one arena are apart at most: its code may be several times as large as theirs, and has to be in reach, too.
const together = 1 << 24

// gateTag is what an open gate has in it besides the address of the slots.
const gateTag = arm64.GateTag

// sharesCode says whether arenas are in a file that the recorder has mapped as well: what is written there would have to be made visible to
// the instruction caches of all cores that have it mapped elsewhere, which the kernel does for what it is asked to write itself. So it is
// written into private copies of the file's pages, and the file only says whose code it is.
const sharesCode = false

// CodePerm is how an arena in a file is mapped.
const CodePerm = process.PermRead | process.PermExec

// exchangedByKernel says whether what changes in code while threads run may be written by the kernel: here it is one byte of one instruction.
const exchangedByKernel = true

// addressTop is where addresses end that user space may map: a kernel has 39, 42, 47 or 48 bits of them (CONFIG_ARM64_VA_BITS), and more only for who
// asks for them. The stack is near it.
func addressTop(maps []process.Mapping) uint64 {
	highest := uint64(0)
	for i := range maps {
		highest = max(highest, maps[i].End)
	}
	for _, bits := range []int{39, 42, 47} {
		if highest <= 1<<bits {
			return 1 << bits
		}
	}
	return 1 << 48
}

// sitesAreWhole says whether a site is one instruction, so that nothing goes on inside of one.
const sitesAreWhole = true
