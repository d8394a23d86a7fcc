// Functions of arm64 with all the ways in and out that the planner has to know. It needs no library: it is linked alone and runs in an emulator.

#define NOINLINE __attribute__((noinline))

volatile long sink;
long table_of_results[64];

// A switch that compilers make a table for.
NOINLINE long by_table(long n) {
	switch (n) {
	case 0: return sink + 1;
	case 1: sink += 7; return 3;
	case 2: return sink * 5;
	case 3: sink -= 9; return 4;
	case 4: return sink ^ 77;
	case 5: sink = n; return 8;
	case 6: return sink << 3;
	case 7: sink |= 1; return 15;
	case 8: return sink % 11;
	case 9: sink &= 255; return 2;
	}
	return -1;
}

// A tail call, and one through a pointer.
NOINLINE long leaf(long n) { sink += n; return n * 3; }
NOINLINE long tail(long n) { sink++; return leaf(n + 1); }
typedef long (*function)(long);
function volatile chosen = leaf;
NOINLINE long tail_by_pointer(long n) { sink--; return chosen(n + 2); }

// A conditional tail call, and a loop that goes back to the first instruction.
NOINLINE long maybe(long n) { if (n > 3) return tail(n); return n; }
NOINLINE long loop(long n) { do { sink += n; } while (--n > 0); return sink; }

// A computed goto.
NOINLINE long threaded(const unsigned char *code) {
	static const void *const labels[] = { &&push, &&add, &&twice, &&stop };
	long stack[8], *top = stack;
	goto *labels[*code++];
push:
	*top++ = *code++;
	goto *labels[*code++];
add:
	top--;
	top[-1] += *top;
	goto *labels[*code++];
twice:
	top[-1] *= 2;
	goto *labels[*code++];
stop:
	return top[-1];
}

// Calls itself, and calls others with a frame.
NOINLINE long recursive(long n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }

// What assembly does at its first and last instructions.
__asm__(
	".text\n.balign 16\n"
	".globl first_adr\n.type first_adr, %function\nfirst_adr: adr x1, 1f\n ldr w0, [x1]\n ret\n .balign 4\n1: .word 41\n.size first_adr, .-first_adr\n"
	".globl first_literal\n.type first_literal, %function\nfirst_literal: ldr w0, 1f\n ret\n1: .word 0xd65f03c0\n.size first_literal, .-first_literal\n"
	".globl first_branch\n.type first_branch, %function\nfirst_branch: cbz x0, leaf\n tbnz w0, #0, tail\n cmp x0, #4\n b.eq leaf\n ret\n.size first_branch, .-first_branch\n"
	".globl first_call\n.type first_call, %function\nfirst_call: bl save\n bl leaf\n ldp x29, x30, [sp], #16\n ret\n.size first_call, .-first_call\n"
	".globl save\n.type save, %function\nsave: mov x9, x30\n stp x29, x10, [sp, #-16]!\n str x11, [sp, #8]\n ret x9\n.size save, .-save\n"
	".globl only_ret\n.type only_ret, %function\nonly_ret: ret\n.size only_ret, .-only_ret\n"
	".globl only_jump\n.type only_jump, %function\nonly_jump: b leaf\n.size only_jump, .-only_jump\n"
	".globl by_x16\n.type by_x16, %function\nby_x16: adrp x16, leaf\n add x16, x16, :lo12:leaf\n br x16\n.size by_x16, .-by_x16\n"
	".globl twice_x16\n.type twice_x16, %function\ntwice_x16: mov x16, x0\n cbz x1, leaf\n add x0, x16, x16\n ret\n.size twice_x16, .-twice_x16\n"
	".globl given_x17\n.type given_x17, %function\ngiven_x17: add x0, x0, x17\n ret\n.size given_x17, .-given_x17\n"
	".globl back_to_start\n.type back_to_start, %function\nback_to_start: subs x0, x0, #1\n b.gt back_to_start\n ret\n.size back_to_start, .-back_to_start\n");
long first_adr(void), first_literal(void), first_branch(long), only_ret(long), only_jump(long), by_x16(long), twice_x16(long, long), back_to_start(long);

long call_first_call(long n) {
	register long x0 __asm__("x0") = n;
	register long x11 __asm__("x11");
	__asm__ volatile("adr x11, 1f\n mov x10, x29\n b first_call\n1:" : "+r"(x0), "=r"(x11) : : "x1", "x2", "x8", "x9", "x10", "x12", "x13", "x16", "x17", "x30", "memory", "cc");
	return x0;
}

void _start(void) {
	long *out = table_of_results;
	for (long n = -1; n < 12; n++)
		*out++ = by_table(n) + tail(n) + tail_by_pointer(n) + maybe(n) + loop(n) + first_branch(n) + only_ret(n) + only_jump(n) + by_x16(n) + twice_x16(n, n & 1);
	static const unsigned char code[] = { 0, 5, 0, 6, 1, 2, 3 };
	*out++ = threaded(code) + recursive(12) + first_adr() + first_literal() + back_to_start(9) + call_first_call(2);
	register long number __asm__("x8") = 93; // exit
	register long status __asm__("x0") = 0;
	__asm__ volatile("svc #0" : : "r"(number), "r"(status));
	__builtin_trap();
}
