/* A function of 64 MiB, all of it zeros, which take no room on the disk, in a program that sleeps. They are add %al,(%rax) on x86-64, and no
   instruction on arm64. */
    .text
    .globl  _start
    .type   _start, %function
    .type   hostile_leaf, %function
_start:
#ifdef __aarch64__
    bl      hostile_leaf
    mov     x8, #64              /* write(1, "ready\n", 6) */
    mov     x0, #1
    adr     x1, ready
    mov     x2, #6
    svc     #0
1:  mov     x8, #63              /* until stdin ends */
    mov     x0, #0
    sub     x1, sp, #64
    mov     x2, #1
    svc     #0
    cmp     x0, #0
    b.gt    1b
    mov     x8, #93
    mov     x0, #0
    svc     #0
    .size   _start, . - _start
hostile_leaf:
    add     x0, x0, #1
    nop
    nop
    ret
#else
    call    hostile_leaf
    mov     $1, %eax             /* write(1, "ready\n", 6) */
    mov     $1, %edi
    lea     ready(%rip), %rsi
    mov     $6, %edx
    syscall
1:  xor     %eax, %eax           /* until stdin ends */
    xor     %edi, %edi
    lea     -64(%rsp), %rsi
    mov     $1, %edx
    syscall
    test    %rax, %rax
    jg      1b
    mov     $60, %eax
    xor     %edi, %edi
    syscall
    .size   _start, . - _start
hostile_leaf:
    lea     1(%rdi), %rax
    nop
    nop
    ret
#endif
    .size   hostile_leaf, . - hostile_leaf
ready:
    .ascii  "ready\n"
    .p2align 12
    .globl  hostile_huge
    .type   hostile_huge, %function
hostile_huge:
    .skip   64 << 20
    ret
    .size   hostile_huge, . - hostile_huge
    .section .note.GNU-stack, "", %progbits
