package target

// PageSize is what memory in targets is a multiple of, in bytes: the largest pages that the processor's kernels have. They may have smaller
// ones, of which that is a multiple. So what is left of a recorder is recognized whichever kernel it ran on.
const PageSize = 64 << 10
