// Crashes three calls deep, without a C library, so that it can be built for any processor.
static volatile int *nowhere = (int *)0x10;

__attribute__((noinline)) int deepest(int n) {
	volatile int pad[20];
	pad[n] = n;
	*nowhere = pad[n];
	return pad[n];
}

__attribute__((noinline)) int middle(int n) { return deepest(n + 1) + 1; }

__attribute__((noinline)) int outer(int n) {
	volatile int pad[50];
	pad[n] = 7;
	return middle(n + 1) + pad[n];
}

#ifdef OVERFLOW
__attribute__((noinline)) int overflow(int n) {
	volatile char pad[4096];
	pad[n & 4095] = n;
	return overflow(n + 1) + pad[0];
}
#endif

void begin(void) {
#ifdef OVERFLOW
	overflow(1);
#endif
	outer(1);
	for (;;);
}

#if defined(__aarch64__)
__asm__(".globl _start\n.type _start,%function\n_start:\n.cfi_startproc\n.cfi_undefined x30\n"
	"mov x29, #0\nbl begin\n.cfi_endproc\n.size _start,.-_start\n");
#elif defined(__i386__)
__asm__(".globl _start\n.type _start,@function\n_start:\n.cfi_startproc\n.cfi_undefined eip\n"
	"xorl %ebp,%ebp\ncall begin\n.cfi_endproc\n.size _start,.-_start\n");
#else
__asm__(".globl _start\n.type _start,@function\n_start:\n.cfi_startproc\n.cfi_undefined rip\n"
	"xorl %ebp,%ebp\ncall begin\n.cfi_endproc\n.size _start,.-_start\n");
#endif
