	.arch armv9-a+sve+sme
	.text
	.globl _start
_start:
	mov x29, #0
	bl cmain
	brk #1

	.globl start_thread
start_thread:
	ldr x0, [sp]
	mov x29, #0
	bl thread_main
	brk #2

/* run_state(fn, in, out): offsets are those of struct state. */
	.globl run_state
run_state:
	stp x29, x30, [sp, #-176]!
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	stp x27, x28, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	stp x1, x2, [sp, #160]
	adrp x9, frame
	mov x10, sp
	str x10, [x9, :lo12:frame]
	mov x10, sp
	str x10, [x1, #768]
	adr x10, back
	str x10, [x1, #240]
	mov x16, x0
	mov x17, x1
	add x9, x17, #256
	.irp n,0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30
	ldr q\n, [x9, #(16*\n)]
	.endr
	.irp n,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31
	ldr q\n, [x9, #(16*\n)]
	.endr
	ldr x9, [x17, #776]
	cbz x9, 1f
	/* predicates through x10, vectors through x11; their low halves are what q will be compared with */
	mov x11, #784
	add x11, x17, x11
	mov x10, #784
	add x10, x10, #8192
	add x10, x17, x10
	tbz x9, #16, 3f
	smstart sm
	b 4f
	/* FFR must be some first lanes: chance would mostly be none */
3:	mov x12, #16*32
	add x12, x10, x12
	ptrue p0.b, vl7
	wrffr p0.b
	str p0, [x12]
4:	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	mov x12, #(32*\n)
	add x12, x10, x12
	ldr p\n, [x12]
	.endr
	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	mov x12, #(256*\n)
	add x12, x11, x12
	ldr z\n, [x12]
	str q\n, [x17, #(256+16*\n)]
	.endr
1:
	ldr x9, [x17, #248]
	msr nzcv, x9
	ldp x0, x1, [x17]
	ldp x2, x3, [x17, #16]
	ldp x4, x5, [x17, #32]
	ldp x6, x7, [x17, #48]
	ldp x8, x9, [x17, #64]
	ldp x10, x11, [x17, #80]
	ldp x12, x13, [x17, #96]
	ldp x14, x15, [x17, #112]
	ldp x18, x19, [x17, #144]
	ldp x20, x21, [x17, #160]
	ldp x22, x23, [x17, #176]
	ldp x24, x25, [x17, #192]
	ldp x26, x27, [x17, #208]
	ldp x28, x29, [x17, #224]
	adr x30, back
	br x16
back:
	adrp x16, frame
	ldr x16, [x16, :lo12:frame]
	ldr x17, [x16, #168]
	stp x0, x1, [x17]
	stp x2, x3, [x17, #16]
	stp x4, x5, [x17, #32]
	stp x6, x7, [x17, #48]
	stp x8, x9, [x17, #64]
	stp x10, x11, [x17, #80]
	stp x12, x13, [x17, #96]
	stp x14, x15, [x17, #112]
	stp x18, x19, [x17, #144]
	stp x20, x21, [x17, #160]
	stp x22, x23, [x17, #176]
	stp x24, x25, [x17, #192]
	stp x26, x27, [x17, #208]
	stp x28, x29, [x17, #224]
	str x30, [x17, #240]
	mrs x9, nzcv
	str x9, [x17, #248]
	mov x9, sp
	str x9, [x17, #768]
	mov sp, x16
	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	str q\n, [x17, #(256+16*\n)]
	.endr
	ldr x18, [sp, #160]
	ldr x9, [x18, #776]
	cbz x9, 2f
	mov x11, #784
	add x11, x17, x11
	mov x10, #784
	add x10, x10, #8192
	add x10, x17, x10
	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	mov x12, #(32*\n)
	add x12, x10, x12
	str p\n, [x12]
	.endr
	tbnz x9, #16, 5f
	rdffr p0.b
	mov x12, #16*32
	add x12, x10, x12
	str p0, [x12]
5:	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	mov x12, #(256*\n)
	add x12, x11, x12
	str z\n, [x12]
	.endr
	tbz x9, #16, 2f
	mrs x10, S3_3_C4_C2_2
	tbnz x10, #0, 6f
	brk #3
6:	smstop sm
2:
	ldp x19, x20, [sp, #16]
	ldp x21, x22, [sp, #32]
	ldp x23, x24, [sp, #48]
	ldp x25, x26, [sp, #64]
	ldp x27, x28, [sp, #80]
	ldp d8, d9, [sp, #96]
	ldp d10, d11, [sp, #112]
	ldp d12, d13, [sp, #128]
	ldp d14, d15, [sp, #144]
	ldp x29, x30, [sp], #176
	ret

	.bss
	.balign 8
frame:	.space 8
