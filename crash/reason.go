package crash

import (
	"fmt"
	"strconv"
)

// linuxSignals are the names of signals of Linux on the processors that are read here.
var linuxSignals = map[uint32]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1",
	11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}

// linuxCodes are the values of si_code that belong to a signal (include/uapi/asm-generic/siginfo.h).
var linuxCodes = map[string][]string{
	"SIGILL":  {"", "ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"},
	"SIGFPE":  {"", "FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"},
	"SIGSEGV": {"", "SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR"},
	"SIGBUS":  {"", "BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"},
	"SIGTRAP": {"", "TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT"},
}

// unknownCode stands for a si_code that the report doesn't have.
const unknownCode = -1 << 31

// signalReason is the reason of a signal of Linux.
func signalReason(signal uint32, code int32, addr uint64) Reason {
	r := Reason{Signal: linuxSignals[signal]}
	if r.Signal == "" {
		r.Signal = "signal " + strconv.FormatUint(uint64(signal), 10)
	}
	if names := linuxCodes[r.Signal]; code > 0 && int(code) < len(names) {
		r.Code = names[code]
		// Only then the address is that of the fault.
		r.Has, r.Address = r.Signal != "SIGTRAP", addr
	}
	switch code {
	case 0:
		r.Code = "SI_USER"
	case -1:
		r.Code = "SI_QUEUE"
	case -6:
		r.Code = "SI_TKILL"
	case 128:
		r.Code = "SI_KERNEL"
	}
	r.text()
	return r
}

// text makes the line of what is known.
func (r *Reason) text() {
	r.Text = r.Signal
	if r.Code != "" {
		r.Text += " (" + r.Code + ")"
	}
	if r.Has {
		r.Text += fmt.Sprintf(" at %#x", r.Address)
	}
}

// machExceptions are Mach's (mach/exception_types.h).
var machExceptions = map[uint32]string{
	1: "EXC_BAD_ACCESS", 2: "EXC_BAD_INSTRUCTION", 3: "EXC_ARITHMETIC", 4: "EXC_EMULATION", 5: "EXC_SOFTWARE", 6: "EXC_BREAKPOINT",
	7: "EXC_SYSCALL", 8: "EXC_MACH_SYSCALL", 9: "EXC_RPC_ALERT", 10: "EXC_CRASH", 11: "EXC_RESOURCE", 12: "EXC_GUARD", 13: "EXC_CORPSE_NOTIFY",
}

// machAccess are the codes of EXC_BAD_ACCESS (mach/kern_return.h).
var machAccess = map[uint32]string{1: "KERN_INVALID_ADDRESS", 2: "KERN_PROTECTION_FAILURE", 13: "EXC_I386_GPFLT", 257: "EXC_ARM_DA_ALIGN", 258: "EXC_ARM_DA_DEBUG"}

// windowsExceptions are the exceptions that programs end with (ntstatus.h).
var windowsExceptions = map[uint32]string{
	0x80000001: "EXCEPTION_GUARD_PAGE", 0x80000002: "EXCEPTION_DATATYPE_MISALIGNMENT", 0x80000003: "EXCEPTION_BREAKPOINT", 0x80000004: "EXCEPTION_SINGLE_STEP",
	0xc0000005: "EXCEPTION_ACCESS_VIOLATION", 0xc0000006: "EXCEPTION_IN_PAGE_ERROR", 0xc000001d: "EXCEPTION_ILLEGAL_INSTRUCTION",
	0xc000008c: "EXCEPTION_ARRAY_BOUNDS_EXCEEDED", 0xc000008e: "EXCEPTION_FLT_DIVIDE_BY_ZERO", 0xc0000094: "EXCEPTION_INT_DIVIDE_BY_ZERO",
	0xc0000095: "EXCEPTION_INT_OVERFLOW", 0xc0000096: "EXCEPTION_PRIV_INSTRUCTION", 0xc00000fd: "EXCEPTION_STACK_OVERFLOW",
	0xc0000374: "STATUS_HEAP_CORRUPTION", 0xc0000409: "STATUS_STACK_BUFFER_OVERRUN", 0xc000000d: "STATUS_INVALID_PARAMETER", 0xe06d7363: "C++ exception",
}

// simulated are the exceptions that Crashpad and Breakpad make themselves.
var simulated = map[uint32]string{
	0xffffffff: "DUMP_REQUESTED", 0x0517a7ed: "CRASHPAD_SIMULATED", 0x43507378: "MACH_EXC_CRASHPAD_SIMULATED", 0x43506e78: "NSException", 0xdeadc0de: "NSException",
}

// reason is why a minidump was written.
func (d *minidump) reason(code, flags uint32, addr uint64, info []uint64) Reason {
	r := Reason{}
	switch {
	case simulated[code] != "":
		r.Signal = simulated[code]
		r.text()
		return r
	case d.report.OS == "linux" || d.report.OS == "android":
		if _, crashpad := d.streams[streamCrashpadInfo]; flags == 0 && !crashpad { // Breakpad doesn't always say which code it was
			if r = signalReason(code, unknownCode, addr); linuxCodes[r.Signal] != nil {
				r.Has, r.Address = true, addr
				r.text()
			}
			return r
		}
		return signalReason(code, int32(flags), addr)
	case d.report.OS == "macos" || d.report.OS == "ios":
		if r.Signal = machExceptions[code]; r.Signal == "" {
			r.Signal = fmt.Sprintf("Mach exception %d", code)
		}
		r.Code = fmt.Sprintf("code %d", flags)
		if code == 1 {
			if name := machAccess[flags]; name != "" {
				r.Code = name
			}
			r.Has, r.Address = true, addr
		}
	default:
		if r.Signal = windowsExceptions[code]; r.Signal == "" {
			r.Signal = fmt.Sprintf("exception %#08x", code)
		}
		r.Has, r.Address = true, addr
		if (code == 0xc0000005 || code == 0xc0000006) && len(info) >= 2 {
			r.Address = info[1]
			r.Code = map[uint64]string{0: "read", 1: "write", 8: "execute"}[info[0]]
		}
	}
	r.text()
	return r
}

// detailsOfOS are the exception's parameters where they say more.
func detailsOfOS(system string, code uint32, info []uint64) []string {
	if system != "windows" || len(info) == 0 || code == 0xc0000005 {
		return nil
	}
	text := "parameters"
	for _, v := range info {
		text += fmt.Sprintf(" %#x", v)
	}
	return []string{text}
}
