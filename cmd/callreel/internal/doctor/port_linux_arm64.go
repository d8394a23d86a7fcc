package doctor

// ported is false: what is checked is x86-64's clock, stacks and system calls.
const ported = false
