//go:build !arm64

package overdue

// returnSize is the size of a return address, which lies where the stack pointer is before a function's first instruction.
const returnSize = 8
