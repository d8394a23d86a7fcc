/* Every kind of marker, in C. It prints what it would print without them. */
#include "callreel.h"

#include <stdio.h>

enum color { RED, GREEN };

static void scoped(int n) {
	CALLREEL_SCOPE("scoped", n);
	if (n > 3)
		return;
	CALLREEL_INSTANT("still here");
}

int main(int argc, char **argv) {
	unsigned char byte = (unsigned char)argc;
	short word = (short)-argc;
	double number = argc * 1.5;
	float small = (float)number;
	char text[32];
	enum color color = GREEN;
	_Bool yes = argc != 0;
	uint64_t id = (uint64_t)argc << 40;
	snprintf(text, sizeof text, "hello %d", argc);

	CALLREEL_THREAD_NAME("main");
	CALLREEL_BEGIN("frame");
	CALLREEL_BEGIN("100 %% \"quoted\" \\ %{a|b%}", argc, byte, word, number, small, CALLREEL_STR(text), color, yes);
	CALLREEL_END_OF("100 %% \"quoted\" \\ %{a|b%}", CALLREEL_STR("done"), 5, -6L, argv, text, CALLREEL_STR(argv[0]), 1.5, 'c');
	CALLREEL_END();
	CALLREEL_BEGIN_S(text, id, CALLREEL_STR(argv[0]));
	CALLREEL_END_OF_S(text);
	CALLREEL_ASYNC_BEGIN("request", id, argc);
	CALLREEL_ASYNC_STEP("request", id);
	CALLREEL_ASYNC_END("request", id);
	CALLREEL_ASYNC_BEGIN_S(text, &id);
	CALLREEL_ASYNC_STEP_S(text, &id);
	CALLREEL_ASYNC_END_S(text, &id);
	CALLREEL_FLOW_OUT("job", id);
	CALLREEL_FLOW_IN("job", id);
	CALLREEL_FLOW_OUT_S(text, id);
	CALLREEL_FLOW_IN_S(text, id);
	CALLREEL_COUNTER("queue", argc);
	CALLREEL_COUNTER("load", number);
	CALLREEL_COUNTER("small", small);
	CALLREEL_COUNTER_F("as double", argc);
	CALLREEL_COUNTER_S(text, argc);
	CALLREEL_COUNTER_S(text, number);
	CALLREEL_COUNTER_F_S(text, argc);
	CALLREEL_INSTANT_S(text);
	CALLREEL_PAUSE();
	CALLREEL_RESUME();
	scoped(argc);
	{
		CALLREEL_SCOPE_S(text);
		if (CALLREEL_RECORDING())
			puts("recorded");
	}
	printf("%d %d %.2f %s\n", byte, word, number, text);
	return 0;
}
