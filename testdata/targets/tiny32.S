/*
 * tiny32: an i386 program, which callreel refuses. It prints "ready", reads
 * stdin to its end and exits with 0. Build with gcc -m32 -nostdlib -static.
 */
        .text
        .globl _start
        .type _start, @function
_start: movl    $4, %eax                /* write(1, text, 6) */
        movl    $1, %ebx
        movl    $text, %ecx
        movl    $6, %edx
        int     $0x80
1:      movl    $3, %eax                /* read(0, byte, 1) */
        xorl    %ebx, %ebx
        movl    $byte, %ecx
        movl    $1, %edx
        int     $0x80
        testl   %eax, %eax
        jg      1b
        movl    $1, %eax                /* exit(0) */
        xorl    %ebx, %ebx
        int     $0x80
        .size _start, .-_start

        .section .rodata
text:   .ascii  "ready\n"
        .bss
byte:   .skip   1
        .section .note.GNU-stack, "", @progbits
