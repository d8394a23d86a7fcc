package target

import "github.com/callreel/callreel/recorder/internal/stub/amd64"

func generator() codegen { return amd64.Generator{} }

// reach is how far an arena may be from the far end of its images: what 32 bits address, with some spare.
const reach = 1<<31 - 1<<20

// gateTag is what an open gate has in it besides the address of the slots.
const gateTag = 0
