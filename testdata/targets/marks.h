/*
 * Notes of markers as SystemTap's sdt.h makes them, written by hand: a nop, and
 * who it is in .note.stapsdt.
 */
#ifndef MARKS_H
#define MARKS_H

#define MARK_NOP "990: nop"
#ifdef __x86_64__
#define MARK_NOP5 "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
#else
#define MARK_NOP5 MARK_NOP
#endif

#define MARK(nop, provider, name, semaphore, args)                            \
    nop "\n"                                                                  \
    ".pushsection .note.stapsdt, \"\", \"note\"\n"                            \
    ".balign 4\n"                                                             \
    ".4byte 8, 993f-992f, 3\n"                                                \
    ".asciz \"stapsdt\"\n"                                                    \
    ".balign 4\n"                                                             \
    "992: .8byte 990b, _.stapsdt.base, " semaphore "\n"                       \
    ".asciz \"" provider "\"\n"                                               \
    ".asciz \"" name "\"\n"                                                   \
    ".asciz \"" args "\"\n"                                                   \
    "993: .balign 4\n"                                                        \
    ".popsection\n"                                                           \
    ".ifndef _.stapsdt.base\n"                                                \
    ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
    ".weak _.stapsdt.base\n"                                                  \
    ".hidden _.stapsdt.base\n"                                                \
    "_.stapsdt.base: .space 1\n"                                              \
    ".size _.stapsdt.base, 1\n"                                               \
    ".popsection\n"                                                           \
    ".endif\n"

/* A semaphore, in the section that programs have theirs in. */
#define SEMAPHORE(name) volatile unsigned short name __attribute__((section(".probes")))
#endif
