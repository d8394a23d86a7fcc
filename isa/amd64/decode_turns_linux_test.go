package amd64

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkDecodeInTurns has all of them decode libc's .text in turns, so that what else the machine does meets each of them alike. The
// figures are ns/inst of the thread's processor time.
func BenchmarkDecodeInTurns(b *testing.B) {
	text, _ := textOf(b, libc)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent, count := make([]time.Duration, len(decoders)), make([]int, len(decoders))
	for b.Loop() {
		for k, d := range decoders {
			from := threadTime(b)
			count[k] += sweep(d.decode, text)
			spent[k] += threadTime(b) - from
		}
	}
	for k, d := range decoders {
		b.ReportMetric(float64(spent[k].Nanoseconds())/float64(count[k]), d.name+"-ns/inst")
	}
	b.ReportMetric(0, "ns/op")
}

// threadTime is the processor time that the thread has used.
func threadTime(b *testing.B) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
}
