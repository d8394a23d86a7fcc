// What C++ has besides: scopes that are left by exceptions, templates, classes' inline functions.
#include "callreel.h"

#include <cstdint>
#include <cstdio>
#include <string>

enum color { RED, GREEN };
enum class shade : unsigned char { DARK, LIGHT };

template <typename T> T twice(T v) {
	CALLREEL_SCOPE("twice", v);
	if (v > 100)
		throw 1;
	return v + v;
}

struct worker {
	int number = 3;
	void *where = nullptr;
	unsigned bits : 3;
	worker() : bits(5) {}
	void work(const std::string &job) {
		CALLREEL_SCOPE_S(job.c_str(), number, where, bits);
		if (number == 4)
			return;
		CALLREEL_COUNTER("jobs", number);
		CALLREEL_COUNTER("share", 1.5f);
		CALLREEL_COUNTER("wide", 3.5L);
		CALLREEL_COUNTER("id", uint64_t(number));
	}
};

int second(int); // in another.cc

int main(int argc, char **argv) {
	char text[32];
	snprintf(text, sizeof text, "hello %d", argc);
	std::string string = text;
	color c = GREEN;
	shade s = shade::LIGHT;
	CALLREEL_BEGIN("all", argc, c, s, argc != 0, argc * 1.5, CALLREEL_STR(string.c_str()), argv, printf);
	CALLREEL_END_OF("all", text, "literal", 5u, 'c', true, 7ull, RED, CALLREEL_STR(text));
	if (argc)
		CALLREEL_SCOPE("nothing");
	worker().work("job");
	twice(3), twice(4.5), twice(7ull);
	try {
		twice(101);
	} catch (int) {
		CALLREEL_INSTANT("caught");
	}
	auto later = [&] { CALLREEL_INSTANT("lambda", argc); };
	later();
	CALLREEL_COUNTER_S(text, argc * 0.5);
	CALLREEL_COUNTER_F("as double", argc);
	if (CALLREEL_RECORDING())
		puts("recorded");
	printf("%s %d\n", string.c_str(), second(argc));
	return 0;
}
