#pragma once

template <class T> inline T twice(T x) { return x + x; }

template <class T> inline T thrice(T x) {
	if (x > 100)
		__builtin_trap();
	return twice(x) + x;
}
