package target

// PageSize is what memory in targets is a multiple of, in bytes: the processor's pages.
const PageSize = 4096
