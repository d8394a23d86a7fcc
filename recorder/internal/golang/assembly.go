package golang

import (
	"slices"
	"strings"
)

// runtimeAssembly are functions of the runtime that are called as others are (asm_amd64.s, mem*_amd64.s, sys_linux_amd64.s of go1.22 to
// go1.26). runtime.call16 to runtime.call1073741824 are, too.
var runtimeAssembly = strings.Fields(`
	cmpstring memequal memequal_varlen memhash strhash memhash32 memhash64 memclrNoHeapPointers memmove reflectcall cputicks procyield
	procyieldAsm exit open closefd write1 read pipe2 usleep gettid raise raiseproc getpid tgkill timer_create timer_settime timer_delete
	mincore nanotime1 rtsigprocmask rt_sigaction sysMmap sysMunmap madvise futex sigaltstack osyield sched_getaffinity vgetrandom1
	checkASM callCgoMmap callCgoMunmap callCgoSigaction
	return0 panicIndex panicIndexU panicSliceAlen panicSliceAlenU panicSliceAcap panicSliceAcapU panicSliceB panicSliceBU panicSlice3Alen
	panicSlice3AlenU panicSlice3Acap panicSlice3AcapU panicSlice3B panicSlice3BU panicSlice3C panicSlice3CU panicSliceConvert`)

// localAssembly are functions without a package to their name that others jump to.
var localAssembly = []string{"cmpbody", "countbody", "memeqbody", "indexbody", "indexbytebody", "aeshashbody"}

// IsTableAssembly says whether the name is that of a function whose address is in a table, by which only assembly calls it
// (internal/runtime/gc/scan of go1.25 and later).
func IsTableAssembly(name string) bool { return strings.HasPrefix(name, "expandAVX512_") }

// IsPlainAssembly says whether the name is that of a function in assembly that may be called by Go code in the usual way only. A child
// of vfork returns from rawVforkSyscall before its parent does.
func IsPlainAssembly(name string) bool {
	if rest, ok := strings.CutPrefix(name, "runtime."); ok {
		digits, call := strings.CutPrefix(rest, "call")
		return slices.Contains(runtimeAssembly, rest) || call && digits != "" && strings.Trim(digits, "0123456789") == ""
	}
	if !strings.Contains(name, ".") {
		return slices.Contains(localAssembly, name) || IsTableAssembly(name)
	}
	return name != "syscall.rawVforkSyscall" && (!strings.HasPrefix(name, "runtime/") || strings.HasPrefix(name, "runtime/internal/"))
}
