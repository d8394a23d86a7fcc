package process

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"

	"golang.org/x/sys/unix"
)

// errNeverHit: breakpoints can be set, and nothing comes of it, as under some hypervisors that run a guest's kernel without the processor's help.
var errNeverHit = errors.New("this machine's hardware breakpoints are never hit, as under some hypervisors")

// breakpointEvent is an event that counts how often a thread executes the instruction at addr; it is off.
func breakpointEvent(addr uint64) unix.PerfEventAttr {
	_, size := arch.breakpoint()
	return unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: unix.PERF_ATTR_SIZE_VER5, Bp_type: 4, // HW_BREAKPOINT_X
		Ext1: addr, Ext2: size, // bp_addr, bp_len
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
}

// hitHere is run over by breakpointsHit.
//
//go:noinline
func hitHere(times *int) { *times++ }

// breakpointsHit tries a breakpoint on a thread of this process's own. The error is errNeverHit if it doesn't see the thread; where it can't
// be set there is none, since who asks for another is told why.
func breakpointsHit() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := breakpointEvent(uint64(reflect.ValueOf(hitHere).Pointer()))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return nil
	}
	var times int
	hitHere(&times)
	var count [8]byte
	if _, err := ignoreEINTR(func() (int, error) { return unix.Read(fd, count[:]) }); err != nil {
		return fmt.Errorf("what a breakpoint has counted can't be read: %w", err)
	}
	if count == [8]byte{} {
		return errNeverHit
	}
	return nil
}
