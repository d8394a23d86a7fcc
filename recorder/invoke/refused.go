package invoke

import "strings"

// refused says why a function must not be called from outside wherever a thread stands, "" if nothing is known against it.
func refused(function string) string {
	name := strings.TrimLeft(function, "_")
	name, _, _ = strings.Cut(name, "@")
	plain := strings.TrimPrefix(strings.TrimPrefix(name, "libc_"), "GI_")
	if why, ok := refusedNames[plain]; ok {
		return why
	}
	if isRust(function) {
		return rustABI
	}
	for _, p := range refusedPrefixes {
		if strings.HasPrefix(name, p.prefix) {
			return p.why
		}
	}
	return ""
}

const (
	noReturn   = "it doesn't return"
	twice      = "it returns twice, the second time when what it returned to is gone"
	replaces   = "it replaces the program"
	starts     = "it is run once, when a program starts or ends"
	changesRun = "it changes where the thread goes on"
	anyCall    = "it makes any system call, also those that end or double the process"
	ofUnwinder = "it unwinds the stack, on which it finds no caller"
	rustABI    = "it is Rust's, whose ABI isn't C's"
	compiled   = "compilers call it, with rules of its own"
)

var refusedNames = func() map[string]string {
	out := map[string]string{}
	for _, l := range []struct{ names, why string }{
		{"exit Exit quick_exit abort assert_fail assert_perror_fail assert pthread_exit thrd_exit chk_fail fortify_fail stack_chk_fail exit_group errx err verrx verr", noReturn},
		{"setjmp sigsetjmp fork vfork Fork libc_fork clone clone2 clone3 daemon forkpty getcontext swapcontext", twice},
		{"longjmp siglongjmp longjmp_chk setcontext makecontext sigreturn rt_sigreturn restore_rt restore pthread_kill_other_threads_np", changesRun},
		{"execl execlp execle execv execve execvp execvpe execveat fexecve", replaces},
		{"main start init fini libc_start_main start_main libc_init_first libc_freeres libc_atexit cxa_finalize run_exit_handlers", starts},
		{"syscall", anyCall},
		{"cxa_throw cxa_rethrow cxa_begin_catch cxa_end_catch gxx_personality_v0", ofUnwinder},
		{"fentry mcount mcount_leave tls_get_addr tls_get_addr_slow", compiled},
	} {
		for _, n := range strings.Fields(l.names) {
			out[n] = l.why
		}
	}
	return out
}()

var refusedPrefixes = []struct{ prefix, why string }{
	{"Unwind_", ofUnwinder},
	{"dl_", "it is the loader's own, which holds its locks when it calls it"},
}

// isRust says whether a name was mangled by rustc: in its own way, or as C++'s with a hash at the end.
func isRust(name string) bool {
	if strings.HasPrefix(name, "_R") && len(name) > 3 && strings.IndexByte("NMXYICB", name[2]) >= 0 {
		return true
	}
	const hash = "17h0123456789abcdefE"
	return strings.HasPrefix(name, "_ZN") && len(name) > len(hash) && strings.HasPrefix(name[len(name)-len(hash):], "17h") && strings.HasSuffix(name, "E")
}
