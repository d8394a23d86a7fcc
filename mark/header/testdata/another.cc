// Another file of the same program: the semaphore is shared.
#include "callreel.h"

int second(int n);
int second(int n) {
	CALLREEL_SCOPE("second", n);
	return CALLREEL_RECORDING() ? -1 : n + 1;
}
