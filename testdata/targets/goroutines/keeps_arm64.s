#include "textflag.h"

// keeps is called as Go functions are; its callees aren't.
TEXT ·keeps(SB), NOSPLIT, $16-16
	MOVD x+0(FP), R0
	MOVD $3, R19
	MOVD $5, R22
	MOVD $7, R25
	BL ·doubles(SB)
	ADD R19, R0
	ADD R22, R0
	ADD R25, R0
	CMP $100, R0
	BL ·nothing(SB)
	BNE done
	MOVD $0, R0
done:
	MOVD R0, ret+8(FP)
	RET

// doubles leaves R19, R22 and R25 as they are, which its caller relies on.
TEXT ·doubles(SB), NOSPLIT, $0-0
	ADD R0, R0
	RET

// nothing leaves the flags as they are.
TEXT ·nothing(SB), NOSPLIT, $0-0
	MOVD R0, R1
	RET
