/* Without markers nothing is evaluated. */
#define CALLREEL_OFF
#include "callreel.h"

int main(void) {
	int n = 0;
	CALLREEL_SCOPE("scope", n++);
	CALLREEL_BEGIN("begin", n++, CALLREEL_STR("a"));
	CALLREEL_COUNTER("counter", n++);
	CALLREEL_COUNTER_F("counter", n++);
	CALLREEL_COUNTER_S("counter", n++);
	CALLREEL_INSTANT("instant");
	CALLREEL_THREAD_NAME("main");
	CALLREEL_PAUSE();
	CALLREEL_RESUME();
	CALLREEL_END();
	return n + CALLREEL_RECORDING();
}
