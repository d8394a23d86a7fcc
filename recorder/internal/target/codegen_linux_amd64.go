package target

import (
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub/amd64"
)

func generator() codegen { return amd64.Generator{} }

// reach is how far an arena may be from the far end of its images: what 32 bits address, with some spare.
const reach = 1<<31 - 1<<20

// leastHeap is what a heap must have to grow into: reach is far enough for all that one may want.
const leastHeap = growth

// together is how far images of one arena are apart at most.
const together = reach / 2

// gateTag is what an open gate has in it besides the address of the slots.
const gateTag = 0

// sharesCode says whether arenas are in a file that the recorder has mapped as well: there what one core writes is what all run.
const sharesCode = true

// CodePerm is how an arena in a file is mapped.
const CodePerm = process.PermRead | process.PermExec | process.PermShared

// exchangedByKernel says whether what changes in code while threads run may be written by the kernel: not where it is several bytes.
const exchangedByKernel = false

// addressTop is where addresses end that user space may map.
func addressTop([]process.Mapping) uint64 { return 1 << 47 }

// sitesAreWhole says whether a site is one instruction, so that nothing goes on inside of one: here it may be several.
const sitesAreWhole = false
