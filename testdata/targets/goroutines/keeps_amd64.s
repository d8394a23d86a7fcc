#include "textflag.h"

// keeps is called as Go functions are; its callee isn't.
TEXT ·keeps(SB), NOSPLIT, $8-16
	MOVQ x+0(FP), AX
	MOVQ $3, R12
	MOVQ $5, R13
	MOVQ $7, R15
	CALL ·doubles(SB)
	ADDQ R12, AX
	ADDQ R13, AX
	ADDQ R15, AX
	CMPQ AX, $100
	CALL ·nothing(SB)
	JNE  done
	MOVQ $0, AX
done:
	MOVQ AX, ret+8(FP)
	RET

// doubles leaves R12, R13 and R15 as they are, which its caller relies on.
TEXT ·doubles(SB), NOSPLIT, $0-0
	ADDQ AX, AX
	NOP
	NOP
	RET

// nothing leaves the flags as they are.
TEXT ·nothing(SB), NOSPLIT, $0-0
	LEAQ 0(AX), AX
	MOVQ AX, AX
	RET
