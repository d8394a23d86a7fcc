package doctor

import (
	"fmt"
	"slices"
)

// clock checks that the kernel keeps time by the counter that stubs read, CNTVCT_EL0: it leaves that where the counter is known to be wrong
// on some processors (arch_timer_check_ool_workaround in drivers/clocksource/arm_arch_timer.c), and traps reads of it then.
func clock() Check {
	const name = "clock"
	rate := counterRate()
	tick := fmt.Sprintf("a tick is %.3g ns", 1e9/float64(max(rate, 1)))
	switch source := readLine("/sys/devices/system/clocksource/clocksource0/current_clocksource"); {
	case rate == 0:
		return no(name, "its firmware has to set CNTFRQ_EL0", "the system counter doesn't say how fast it is")
	case source != "" && source != "arch_sys_counter":
		return warning(name, "see why in dmesg (search it for arch_timer)", "the kernel keeps time by %q, as if it didn't trust the system counter; %s", source, tick)
	case rate < roughRate:
		return warning(name, "", "the system counter (CNTVCT_EL0) runs alike on all processors, but %s: shorter calls may read as 0", tick)
	}
	return ok(name, "the system counter (CNTVCT_EL0) runs alike on all processors; %s", tick)
}

// roughRate is the rate below which report says how long a tick is.
const roughRate = 500_000_000

// counterRate is CNTFRQ_EL0, in ticks a second.
func counterRate() uint64

func shadowStack() Check {
	const name = "shadow stack"
	if slices.Contains(cpuFlags("Features"), "gcs") {
		return ok(name, "there are some (GCS); processes that run on one are refused")
	}
	return ok(name, "none here (no GCS)")
}

// pages tells the kernel's page size, which is 4, 16 or 64 KiB. What was done on a process of our own says that recording works with it.
func pages(size int) []Check { return []Check{ok("pages", "of %d KiB", size>>10)} }
