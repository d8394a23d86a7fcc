package doctor

import (
	"slices"
	"strings"
)

// clock checks that the time-stamp counter runs evenly and alike on all processors.
func clock() Check {
	const name = "clock"
	flags := cpuFlags("flags")
	source := readLine("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	switch {
	case len(flags) == 0:
		return warning(name, "", "/proc/cpuinfo does not say what the processor's time-stamp counter is like")
	case !slices.Contains(flags, "constant_tsc") || !slices.Contains(flags, "nonstop_tsc"):
		return warning(name, "compare calls by their number, or use --clock none", "the time-stamp counter changes its rate or stops (no constant_tsc, nonstop_tsc): times are rough")
	case source != "" && source != "tsc" && !strings.HasPrefix(source, "kvm") && !strings.HasPrefix(source, "hyperv"):
		return warning(name, "see why in dmesg (search it for tsc)", "the kernel keeps time by %q, as if it didn't trust the time-stamp counter: times of different threads may not fit each other", source)
	}
	return ok(name, "the time-stamp counter runs evenly on all processors (invariant TSC)")
}

func shadowStack() Check {
	const name = "shadow stack"
	if slices.Contains(cpuFlags("flags"), "user_shstk") {
		return ok(name, "there are some (CET); processes that run on one are refused")
	}
	return ok(name, "none here (no user_shstk)")
}

// pages has nothing to check: they have 4 KiB.
func pages(int) []Check { return nil }
