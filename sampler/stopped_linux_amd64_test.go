package sampler_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
)

// BenchmarkThreadStands measures how long a thread 60 calls deep is stopped, and the
// least that this can take: an order to stop, its registers, one read of its stack, and
// on. Both are medians, for machines that measure are shared.
func BenchmarkThreadStands(b *testing.B) {
	realtest.Need(b, realtest.GXX, realtest.LivePtrace)
	pid := start(b, realtest.Build(b, "deep", "-fomit-frame-pointer"))
	var ours, least []time.Duration
	for b.Loop() {
		c, err := sampler.Stacks(context.Background(), pid, sampler.Options{NoNames: true})
		if err != nil {
			b.Fatal(err)
		}
		ours = append(ours, c.Threads[0].Stopped)
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		least = append(least, leastStop(b, pid))
	}
	slices.Sort(ours)
	slices.Sort(least)
	b.ReportMetric(float64(ours[len(ours)/2].Nanoseconds()), "ns-stood")
	b.ReportMetric(float64(least[len(least)/2].Nanoseconds()), "ns-least")
	b.ReportMetric(float64(ours[len(ours)/2])/float64(least[len(least)/2]), "ratio")
	b.ReportMetric(float64(ours[len(ours)/10])/float64(least[len(least)/10]), "ratio-p10")
}

// leastStop stops the thread with bare system calls.
func leastStop(b *testing.B, pid int) time.Duration {
	b.Helper()
	took := make(chan time.Duration)
	go func() {
		runtime.LockOSThread() // and end the OS thread with the goroutine
		took <- bareStop(pid)
	}()
	d := <-took
	if d < 0 {
		b.Fatal("the thread was not stopped")
	}
	return d
}

func bareStop(pid int) time.Duration {
	if unix.PtraceSeize(pid) != nil {
		return -1
	}
	buf := make([]byte, 64<<10)
	var regs unix.PtraceRegs
	start := time.Now()
	if unix.PtraceInterrupt(pid) != nil {
		return -1
	}
	for {
		got, err := unix.Wait4(pid, nil, unix.WALL|unix.WNOHANG, nil)
		if err != nil {
			return -1
		}
		if got == pid {
			break
		}
	}
	if unix.PtraceGetRegs(pid, &regs) != nil {
		return -1
	}
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(regs.Rsp), Len: len(buf)}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil {
		return -1
	}
	if unix.PtraceCont(pid, 0) != nil {
		return -1
	}
	took := time.Since(start)
	if unix.PtraceInterrupt(pid) != nil {
		return -1
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return -1
	}
	if unix.PtraceDetach(pid) != nil {
		return -1
	}
	return took
}
