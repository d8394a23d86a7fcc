package process

import "syscall"

// A Call is a system call to be made by the target (System V AMD64 ABI §A.2.1).
type Call struct {
	Number uintptr
	Args   [6]uint64

	// Data, when not empty, is put into the target's memory for the time of
	// the call, its address into Args[DataArg], and what the call made of it is
	// copied back. At most MaxCallData bytes.
	Data    []byte
	DataArg int
}

// MaxCallData is the most that a Call's Data may hold, in bytes.
const MaxCallData = 256

// MaxBatch is the most calls that SyscallBatch makes at once: their frames
// lie on the thread's stack.
const MaxBatch = 8

// A SyscallResult is what one Call has returned.
type SyscallResult struct {
	Value uint64        // meaningless when Errno is set
	Errno syscall.Errno // 0 when the call succeeded
}

// Err returns nil when the call succeeded.
func (r SyscallResult) Err() error {
	if r.Errno == 0 {
		return nil
	}
	return r.Errno
}

func resultOf(rax uint64) SyscallResult {
	if rax >= ^uint64(4094) { // -4095 … -1
		return SyscallResult{Errno: syscall.Errno(-rax)}
	}
	return SyscallResult{Value: rax}
}
