package invoke

import (
	"strings"
	"testing"
)

// stand makes a standing of image:function, innermost first; * before one is a signal's frame.
func stand(waits bool, text string) standing {
	s := standing{waits: waits}
	for _, w := range strings.Fields(text) {
		w, signal := strings.CutPrefix(w, "*")
		image, name, _ := strings.Cut(w, ":")
		s.places = append(s.places, place{image, name, signal})
	}
	return s
}

func TestWhereFunctionsMayBeCalled(t *testing.T) {
	const start = " app:main libc.so.6: libc.so.6:__libc_start_main app:_start"
	for _, c := range []struct {
		waits bool
		stack string
		why   string // part of it, "" for none
	}{
		{true, "libc.so.6:epoll_wait app:loop" + start, ""},
		{true, "libc.so.6: libc.so.6:pthread_cond_wait app:worker libc.so.6: libc.so.6:clone", ""},
		{true, "libc.so.6:__read app:" + start, ""},
		{true, "libc.so.6:read libc.so.6: libc.so.6:fgets app:f" + start, "fgets"},
		{true, "libc.so.6: libc.so.6:pthread_mutex_lock app:f" + start, "pthread_mutex_lock"},
		{true, "libc.so.6: libc.so.6:malloc app:f" + start, "allocator: malloc"},
		{true, "libc.so.6:poll libc.so.6: libc.so.6:getaddrinfo app:f" + start, "getaddrinfo"},
		{true, "libc.so.6:nanosleep plugin.so:init ld-linux-x86-64.so.2: ld-linux-x86-64.so.2: libc.so.6:dlopen app:f" + start, "called by the C library"},
		{true, "libc.so.6:nanosleep app:compare libc.so.6: libc.so.6:qsort app:f" + start, ""},
		{true, "libc.so.6:nanosleep app:handler *libc.so.6: app:f" + start, "signal"},
		{true, "libc.so.6:nanosleep app:atexit_handler libc.so.6: libc.so.6:exit app:f" + start, "exit"},
		{true, "libc.so.6:nanosleep app:atexit_handler libc.so.6: libc.so.6:exit libc.so.6: libc.so.6:__libc_start_main app:_start", "exit"},
		{true, "libc.so.6:nanosleep app:each libc.so.6:dl_iterate_phdr app:f" + start, "dl_iterate_phdr"},
		{true, "libc.so.6:nanosleep libjemalloc.so.2: app:f" + start, "libjemalloc"},
		{true, "libc.so.6:read", "alone"},
		{false, "app:work app:f" + start, ""},
		{false, "app: app:f" + start, "no name"},
		{false, "libc.so.6:memcpy app:f" + start, ""},
		{false, "libc.so.6:strdup app:f" + start, "strdup"},
		{false, "libc.so.6: app:f" + start, "a function of libc"},
		{false, "libc.so.6:epoll_wait app:f" + start, "epoll_wait"},
		{false, "app:je_arena_choose app:f" + start, "je_arena_choose"},
		{false, "app:_Znwm app:f" + start, "_Znwm"},
		{false, "libgcc_s.so.1:_Unwind_Find_FDE libstdc++.so.6:__cxa_throw app:f" + start, "C++"},
		{false, "ld-linux-x86-64.so.2: app:f" + start, "ld-linux"},
		{false, ": node:run" + start, "no file"},
		{true, "", "walked"},
	} {
		got := stand(c.waits, c.stack).unsafe()
		if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("waits %v, %s: %q, want %q", c.waits, c.stack, got, c.why)
		}
	}
	if got := (standing{end: "no row"}).unsafe(); !strings.Contains(got, "no row") {
		t.Errorf("a stack without an end: %q", got)
	}
}

func TestFunctionsThatAreRefusedByName(t *testing.T) {
	for _, name := range []string{"exit", "_exit", "fork", "__libc_fork", "vfork", "_setjmp", "__sigsetjmp", "siglongjmp", "execve", "pthread_exit", "abort",
		"__assert_fail", "_start", "main", "syscall", "_Unwind_Resume", "__cxa_throw", "_dl_open", "clone", "_RNvC3foo3bar", "_ZN3foo3bar17h0123456789abcdefE", "__restore_rt"} {
		if refused(name) == "" {
			t.Errorf("%s may be called", name)
		}
	}
	for _, name := range []string{"malloc_trim", "getpid", "exits", "dlsym", "_ZN3foo3barEv", "R_init", "raise", "__errno_location"} {
		if why := refused(name); why != "" {
			t.Errorf("%s is refused: %s", name, why)
		}
	}
}
