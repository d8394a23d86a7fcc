/*
 * names: prints "ready" and waits for a line on stdin below functions whose names are not
 * plain: a definition with aliases, a part that the compiler has split off, and assembly
 * without types and sizes.
 */
#include "target.h"

volatile int sink;

TRACED void names_wait(void)
{
    target_ready();
    target_wait_line();
    puts("names done=1 ok");
    fflush(stdout);
    _exit(0);
}

#ifdef __aarch64__
#define FRAME                                                                          \
    "	.cfi_startproc\n"                                                                  \
    "	stp x29, x30, [sp, #-16]!\n"                                                       \
    "	.cfi_def_cfa_offset 16\n"                                                          \
    "	.cfi_offset x29, -16\n"                                                            \
    "	.cfi_offset x30, -8\n"                                                             \
    "	mov x29, sp\n"
#define RETURN                                                                         \
    "	ldp x29, x30, [sp], #16\n"                                                         \
    "	.cfi_def_cfa_offset 0\n"                                                           \
    "	.cfi_restore x29\n"                                                                \
    "	.cfi_restore x30\n"                                                                \
    "	ret\n"                                                                             \
    "	.cfi_endproc\n"
__asm__(".text\n"
        ".globl plain_assembly\n"
        "plain_assembly:\n" FRAME "	bl local_assembly\n" RETURN
        "local_assembly:\n" FRAME "	bl names_wait\n" RETURN
        ".globl typed_assembly\n"
        ".type typed_assembly, %function\n"
        "typed_assembly:\n" FRAME
        ".globl label_inside\n"
        "label_inside:\n"
        "	bl plain_assembly\n" RETURN
        ".size typed_assembly, .-typed_assembly\n");
#else
__asm__(".text\n"
        ".globl plain_assembly\n"
        "plain_assembly:\n"
        "	.cfi_startproc\n"
        "	subq $8, %rsp\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	call local_assembly\n"
        "	addq $8, %rsp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        "	.cfi_endproc\n"
        "local_assembly:\n"
        "	.cfi_startproc\n"
        "	pushq %rbx\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	call names_wait\n"
        "	popq %rbx\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".globl typed_assembly\n"
        ".type typed_assembly, @function\n"
        "typed_assembly:\n"
        "	.cfi_startproc\n"
        "	subq $8, %rsp\n"
        "	.cfi_adjust_cfa_offset 8\n"
        ".globl label_inside\n"
        "label_inside:\n"
        "	call plain_assembly\n"
        "	addq $8, %rsp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".size typed_assembly, .-typed_assembly\n");
#endif

void typed_assembly(void);

static __attribute__((noinline, noclone)) int zz_definition(int x)
{
    typed_assembly();
    return x + sink;
}

int alias(int x) __attribute__((alias("zz_definition")));
int _inner_alias(int x) __attribute__((alias("zz_definition")));

/* Called with one constant only, which gcc makes a variant of it for. */
static __attribute__((noinline)) int varied(int x, int constant)
{
    return alias(x + constant) + sink;
}

TRACED int call_varied(int x) { return varied(x, 7) + varied(x + 1, 7) + 1; }

int main(int argc, char **argv)
{
    (void)argv;
    return call_varied(argc) + sink;
}
