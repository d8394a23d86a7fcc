package step

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// calls is a program of ordinary calls: recursion, a frame of variable size, callbacks, calls out of the program.
const calls = `
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE int leaf(int x) { return x * 3 + 1; }
NOINLINE int fib(int n) { return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2); }
NOINLINE int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
NOINLINE int sorted(int n) {
	int v[n];
	for (int i = 0; i < n; i++) v[i] = i * 7919 % n;
	qsort(v, n, sizeof *v, compare);
	return v[n / 2];
}
NOINLINE long double many(int a, int b, int c, int d, int e, int f, int g, int h, long double x) { return a + b + c + d + e + f + g + h + x; }
int main(void) {
	char text[100];
	snprintf(text, sizeof text, "%d %d %Lf", fib(7), sorted(20), many(1, 2, 3, 4, 5, 6, 7, 8, 9.5L));
	puts(text);
	return 0;
}`

func TestRightCallFrameInformationGivesNoFinding(t *testing.T) {
	for _, flags := range [][]string{
		{"-O0"}, {"-O2"}, {"-O2", "-fno-omit-frame-pointer"}, {"-Os", "-mno-red-zone"}, {"-O3", "-static"}, {"-O2", "-no-pie", "-fcf-protection"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			path := build(t, map[string]string{"x.c": calls}, flags...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			result := follow(t, Options{Command: []string{path}, Stdout: w}, "main", "fib", "leaf", "sorted", "compare", "many")
			w.Close()
			said, err := io.ReadAll(r)
			if err != nil || string(said) != "60 10 45.500000\n" {
				t.Errorf("the command wrote %q, %v", said, err)
			}
			expectNothing(t, result, 5+50) // fib's recursion may be unrolled
			if result.Functions < 5 || result.Threads != 1 {
				t.Errorf("%+v", result)
			}
		})
	}
}

func TestWhatIsNotChosenRunsFreely(t *testing.T) {
	path := build(t, map[string]string{"x.c": calls}, "-O1", "-fno-optimize-sibling-calls")
	r := follow(t, Options{Command: []string{path}}, "sorted")
	if expectNothing(t, r, 1); r.Calls != 1 || r.Functions != 1 || r.Chosen != 1 {
		t.Errorf("%+v", r)
	}
	all := follow(t, Options{Command: []string{path}}, "sorted", "compare")
	if expectNothing(t, all, 10); all.Steps <= r.Steps {
		t.Errorf("%d steps with compare, %d without", all.Steps, r.Steps)
	}
}

func TestTailCallsGoOnInTheSameFrame(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE int last(int x) { __asm__(""); return x + 1; }
NOINLINE int unchosen(int x) { __asm__(""); return last(x + 1); }
NOINLINE int middle(int x) { __asm__(""); return x & 1 ? unchosen(x) : last(x); }
NOINLINE int first(int x) { __asm__(""); return middle(x * 2 + (x > 5)); }
NOINLINE int outside(int x) { return abs(x); }
int main(void) {
	int sum = 0;
	for (int i = 0; i < 10; i++) sum += first(i) + outside(-i);
	return sum != 45 + 90 + 4 + 10 + 4;
}`}, "-O2", "-fno-builtin")
	r := follow(t, Options{Command: []string{path}}, "first", "middle", "last", "outside", "main")
	expectNothing(t, r, 1+10+10+10+10)
	if r.Functions != 5 {
		t.Errorf("%d functions", r.Functions)
	}
}

func TestSignalsArriveInTheMiddle(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile int handled, wanted = 5;
static struct itimerval once = {{0, 0}, {0, 3000}};
NOINLINE int inner(int x) { int v[8]; for (int i = 0; i < 8; i++) v[i] = x ^ i; return v[x & 7]; }
/* The next signal is ordered by the handler: where steps take long, a timer that goes on by itself would leave no time to the rest. */
NOINLINE void chosen(int s, siginfo_t *i, void *c) { handled += inner(3) == 0; if (handled < wanted) setitimer(ITIMER_REAL, &once, 0); }
NOINLINE void unchosen(int s) { handled += inner(3) == 0; if (handled < wanted) setitimer(ITIMER_REAL, &once, 0); }
NOINLINE int work(void) {
	int n = 0;
	while (handled < wanted) n += inner(n);
	raise(SIGUSR1);
	*(volatile char *)&wanted = 1;
	kill(getpid(), SIGUSR2);
	return n;
}
int main(int c, char **v) {
	stack_t alternate = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	sigaltstack(&alternate, 0);
	struct sigaction a = {.sa_sigaction = chosen, .sa_flags = SA_SIGINFO | SA_ONSTACK}, b = {.sa_handler = unchosen};
	sigaction(SIGALRM, c > 1 ? &a : &b, 0);
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &b, 0);
	signal(SIGCHLD, SIG_IGN);
	setitimer(ITIMER_REAL, &once, 0);
	work();
	return handled < 7;
}`}, "-O1")
	for _, command := range [][]string{{path}, {path, "alternate"}} {
		r := follow(t, Options{Command: command}, "work", "inner", "chosen")
		expectNothing(t, r, 9)
		if r.Functions != 3 {
			t.Errorf("%+v", r)
		}
	}
}

func TestFramesThatAreLeftAreDropped(t *testing.T) {
	t.Run("longjmp", func(t *testing.T) {
		path := build(t, map[string]string{"x.c": `
#include <setjmp.h>
#define NOINLINE __attribute__((noinline, noclone))
static jmp_buf back;
NOINLINE int deep(int n) { volatile int v[10]; v[n % 10] = n; if (n == 0) longjmp(back, 1); return deep(n - 1) + v[n % 10]; }
NOINLINE int again(int n) { volatile int v[3] = {n}; return v[0] + 1; }
NOINLINE int caught(int n) { if (setjmp(back)) return again(n); return deep(n); }
int main(void) { int sum = 0; for (int i = 0; i < 5; i++) sum += caught(i); return sum != 15; }`}, "-O1")
		expectNothing(t, follow(t, Options{Command: []string{path}}, "main", "deep", "again", "caught"), 1+5+5+15)
	})
	t.Run("exceptions", func(t *testing.T) {
		path := build(t, map[string]string{"x.cc": `
#define NOINLINE __attribute__((noinline, noclone))
struct guard { int *n; ~guard() { ++*n; } };
extern "C" {
NOINLINE int deep(int n, int *left) { guard g{left}; if (n == 0) throw 7; return deep(n - 1, left) + 1; }
NOINLINE int again(int n) { volatile int v[3] = {n}; return v[0] + 1; }
NOINLINE int caught(int n) { int left = 0; try { return deep(n, &left); } catch (int x) { return again(left); } }
}
int main() { int sum = 0; for (int i = 0; i < 5; i++) sum += caught(i); return sum != 20; }`}, "-O1")
		expectNothing(t, follow(t, Options{Command: []string{path}}, "main", "deep", "again", "caught", "_Unwind_RaiseException", "_Unwind_Resume"), 1+5+5+15+5+10)
	})
	t.Run("coroutines", func(t *testing.T) {
		path := build(t, map[string]string{"x.c": `
#include <stdlib.h>
#include <ucontext.h>
#define NOINLINE __attribute__((noinline, noclone))
static ucontext_t home, other;
static int turns;
NOINLINE void turn(ucontext_t *from, ucontext_t *to) { turns++; swapcontext(from, to); turns++; }
NOINLINE void body(void) { for (int i = 0; i < 4; i++) turn(&other, &home); }
NOINLINE void run(void) { for (int i = 0; i < 5; i++) turn(&home, &other); }
int main(void) {
	getcontext(&other);
	other.uc_stack.ss_sp = malloc(1 << 16); other.uc_stack.ss_size = 1 << 16; other.uc_link = &home;
	makecontext(&other, body, 0);
	run();
	return turns != 18;
}`}, "-O1")
		expectNothing(t, follow(t, Options{Command: []string{path}}, "main", "run", "turn", "body", "swapcontext"), 1+1+9)
	})
}

func TestEveryThreadHasItsOwnShadows(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
#include <pthread.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE long inner(long x) { volatile long v[4] = {x}; return v[0] + 1; }
NOINLINE long work(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += inner(i); return sum; }
static void *start(void *p) { return (void *)work((long)p); }
int main(void) {
	pthread_t t[4];
	long bad = 0;
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, start, (void *)(100 + i));
	for (long i = 0; i < 4; i++) { void *v; pthread_join(t[i], &v); bad += (long)v != (100 + i) * (101 + i) / 2; }
	return bad;
}`}, "-O1")
	r := follow(t, Options{Command: []string{path}}, "work", "inner")
	if expectNothing(t, r, 100); r.Threads < 2 {
		t.Errorf("calls were followed in %d threads", r.Threads)
	}
}

func TestOtherProcessesRunUnharmed(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
extern char **environ;
NOINLINE int work(int n) { volatile int v[4] = {n}; return v[0] + 1; }
NOINLINE int forked(void) { pid_t p = fork(); if (p == 0) _exit(work(6)); int s; waitpid(p, &s, 0); return WEXITSTATUS(s) != 7; }
NOINLINE int vforked(void) { pid_t p = vfork(); if (p == 0) { work(1); _exit(work(7)); } int s; waitpid(p, &s, 0); return WEXITSTATUS(s) != 8; }
NOINLINE int spawned(void) {
	char *argv[] = {"sh", "-c", "exit 9", 0};
	pid_t p;
	int s;
	if (posix_spawn(&p, "/bin/sh", 0, 0, argv, environ)) return 1;
	waitpid(p, &s, 0);
	return WEXITSTATUS(s) != 9;
}
int main(void) { return work(1) != 2 || forked() || vforked() || spawned() || system("exit 3") >> 8 != 3 || work(2) != 3; }`}, "-O1")
	r := follow(t, Options{Command: []string{path}}, "work", "forked", "vforked", "spawned", "main")
	expectNothing(t, r, 6)
}

func TestAnotherProgramIsNotFollowed(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
#include <unistd.h>
__attribute__((noinline)) int replace(void) { return execl("/bin/sh", "sh", "-c", "exit 0", (char *)0); }
int main(void) { return replace(); }`}, "-O1")
	r := follow(t, Options{Command: []string{path}}, "replace")
	if expectNothing(t, r, 1); len(r.Problems) != 1 || !errors.Is(r.Problems[0], ErrOtherProgram) {
		t.Errorf("%v", r.Problems)
	}
}

func TestLibrariesThatAreOpenedLaterAreFollowed(t *testing.T) {
	library := build(t, map[string]string{"x.c": `__attribute__((noinline)) int late(int n) { volatile int v[4] = {n}; return v[0] + 1; }`}, "-shared", "-fPIC", "-O1")
	path := build(t, map[string]string{"x.c": `
#include <dlfcn.h>
int main(int c, char **v) {
	for (int i = 0; i < 3; i++) {
		void *h = dlopen(v[1], RTLD_NOW);
		int (*late)(int) = (int (*)(int))dlsym(h, "late");
		if (late(i) != i + 1 || dlclose(h)) return 1;
	}
	return 0;
}`})
	r := follow(t, Options{Command: []string{path, library}}, "late")
	if expectNothing(t, r, 3); r.Calls != 3 {
		t.Errorf("%d calls", r.Calls)
	}
}

func TestBeyondMaxStepsTheCommandRunsOn(t *testing.T) {
	path := build(t, map[string]string{"x.c": calls}, "-O0")
	r := follow(t, Options{Command: []string{path}, MaxSteps: 100}, "fib", "leaf")
	if r.Steps != 100 || r.Complete || r.ExitStatus.Code != 0 || r.ExitStatus.Signal != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAnEndedContextKillsTheCommand(t *testing.T) {
	path := build(t, map[string]string{"x.c": `#include <unistd.h>
		__attribute__((noinline)) void work(void) { for (;;) pause(); } int main(void) { work(); }`}, "-O1")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	r, err := Run(ctx, Options{Command: []string{path}, Function: func(name string) bool { return name == "work" }})
	if !errors.Is(err, context.DeadlineExceeded) || r == nil || r.Calls != 1 || r.ExitStatus.Signal != 9 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTheProgramsOwnTrapsAndFlagsAreItsOwn(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
#include <signal.h>
static volatile int traps;
static void trapped(int s) { traps++; }
__attribute__((noinline)) long work(void) {
	long flags;
	__asm__ volatile("sub $128, %%rsp; pushf; pop %0; add $128, %%rsp" : "=r"(flags));
	__asm__ volatile("sub $128, %%rsp; pushf; popf; add $128, %%rsp" ::: "cc");
	__asm__ volatile("int3");
	raise(SIGTRAP);
	return flags & 0x100;
}
int main(void) { signal(SIGTRAP, trapped); return work() != 0 || traps != 2; }`}, "-O0", "-fno-asynchronous-unwind-tables")
	r := follow(t, Options{Command: []string{path}}, "work")
	if r.ExitStatus.Code != 0 || r.ExitStatus.Signal != 0 || r.Calls != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRepeatedInstructionsAreNotSteppedThrough(t *testing.T) {
	path := build(t, map[string]string{"x.c": `
static char area[1 << 20];
__attribute__((noinline)) void fill(void) { char *p = area; long n = sizeof area; __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(7) : "memory"); }
int main(void) { fill(); return area[sizeof area - 1] != 7; }`}, "-O1")
	r := follow(t, Options{Command: []string{path}}, "fill")
	if expectNothing(t, r, 1); r.Steps > 100 {
		t.Errorf("%d steps", r.Steps)
	}
}

func TestRunRefusesWhatCannotBeFollowed(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	if _, err := Run(t.Context(), Options{Command: []string{filepath.Join(t.TempDir(), "none")}}); err == nil {
		t.Error("a command that is not there was run")
	}
	if _, err := Run(t.Context(), Options{}); err == nil {
		t.Error("no command was run")
	}
	path := build(t, map[string]string{"x.c": calls})
	refused := errors.New("not these")
	if r, err := Run(t.Context(), Options{Command: []string{path}, Ready: func() error { return refused }}); !errors.Is(err, refused) || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
