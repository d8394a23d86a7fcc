// Package corefile reads ELF core files of Linux: the threads and their registers,
// what was mapped where, and the memory that was written out.
//
// The layouts are those of include/uapi/linux/elfcore.h and elf.h as the kernel and
// gcore write them. A file may be cut off at any place and every byte may be wrong:
// what can be read is given, and File.Problems says what was lost.
package corefile
