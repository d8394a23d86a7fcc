/* A function of 64 MiB, all of it zeros (add %al,(%rax)), which take no room on the disk, in a program that sleeps. */
    .text
    .globl  _start
    .type   _start, @function
_start:
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
    .type   hostile_leaf, @function
hostile_leaf:
    lea     1(%rdi), %rax
    nop
    nop
    ret
    .size   hostile_leaf, . - hostile_leaf
    .p2align 12
    .globl  hostile_huge
    .type   hostile_huge, @function
hostile_huge:
    .skip   64 << 20
    ret
    .size   hostile_huge, . - hostile_huge
    .section .rodata
ready:
    .ascii  "ready\n"
    .section .note.GNU-stack, "", @progbits
