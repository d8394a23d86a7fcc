package process

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A ThreadInfo is what /proc says about one thread.
type ThreadInfo struct {
	TID       int    // as seen from here
	NSTID     int    // as the target sees it, in its innermost PID namespace
	Name      string // at most 15 bytes, not necessarily unique
	State     byte   // R, S, D, T, t, Z, X, I
	StartTime uint64 // clock ticks since boot
	Worker    bool   // a kernel worker (io_uring, vhost) that runs no user code and cannot be stopped
}

// Status holds the fields of /proc/PID/status (or of one thread's) that decide
// how a target can be treated.
type Status struct {
	Name       string
	TGID       int
	TracerPID  int    // 0 when none
	NSPIDs     []int  // outermost namespace first
	UIDs       [4]int // real, effective, saved, of files
	GIDs       [4]int
	Groups     []int  // supplementary
	Capable    uint64 // what it may do beyond its user's rights: permitted capabilities, n is bit n
	VMLock     uint64 // locked memory, bytes
	VMPeak     uint64 // the most memory that was resident (VmHWM), bytes
	SigPending uint64 // for the process as a whole; signal n is bit n-1
	SigWaiting uint64 // for this thread (SigPnd)
	SigBlocked uint64
	SigIgnored uint64
	SigCaught  uint64
	NoNewPrivs bool
	Seccomp    int // 0 none, 1 strict, 2 filter
	// Switches is how often the thread has left the processor, of its own will or not, and Waits how often of its own will.
	Switches, Waits uint64
	// ThreadFeatures has "shstk" while a user shadow stack is on.
	ThreadFeatures string
}

const (
	flagExiting      = 0x00000004 // PF_EXITING, include/linux/sched.h
	flagKernelThread = 0x00200000 // PF_KTHREAD
	flagIOWorker     = 0x00000010 // PF_IO_WORKER
	flagUserWorker   = 0x00004000 // PF_USER_WORKER
)

type stat struct {
	name      string
	state     byte
	parent    int // process ID
	flags     uint64
	startTime uint64
}

// ended says whether the thread will never run again.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

// worker says whether it is a thread of the kernel's own, see ThreadInfo.Worker.
func (s stat) worker() bool { return s.flags&(flagIOWorker|flagUserWorker) != 0 }

var errStat = errors.New("malformed stat")

// parseStat reads a /proc/PID/stat line (proc_pid_stat(5)). The name may hold
// spaces and parentheses, so the last ')' ends it.
func parseStat(text []byte) (stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("%w: no name", errStat)
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return stat{}, fmt.Errorf("%w: %d fields", errStat, len(fields))
	}
	// fields[0] is field 3 of the manual page.
	parent, err0 := strconv.Atoi(string(fields[4-3]))
	flags, err1 := strconv.ParseUint(string(fields[9-3]), 10, 64)
	start, err2 := strconv.ParseUint(string(fields[22-3]), 10, 64)
	if err := errors.Join(err0, err1, err2); err != nil {
		return stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	return stat{string(text[open+1 : end]), fields[0][0], parent, flags, start}, nil
}

// ParseStatus reads the text of a /proc/PID/status file (proc_pid_status(5)).
// Lines it doesn't know are passed over.
func ParseStatus(text []byte) (Status, error) {
	var s Status
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(string(bytes.TrimRight(line, "\n")), ":")
		if !ok {
			continue
		}
		if err := s.set(key, strings.TrimSpace(value)); err != nil {
			return Status{}, fmt.Errorf("status: %s: %w", key, err)
		}
	}
	return s, nil
}

func (s *Status) set(key, value string) (err error) {
	switch key {
	case "Name":
		s.Name = value
	case "Tgid":
		s.TGID, err = strconv.Atoi(value)
	case "TracerPid":
		s.TracerPID, err = strconv.Atoi(value)
	case "NSpid":
		s.NSPIDs, err = atois(strings.Fields(value))
	case "Uid":
		var uids []int
		uids, err = atois(strings.Fields(value))
		copy(s.UIDs[:], uids)
	case "Gid":
		var gids []int
		gids, err = atois(strings.Fields(value))
		copy(s.GIDs[:], gids)
	case "Groups":
		s.Groups, err = atois(strings.Fields(value))
	case "CapPrm":
		s.Capable, err = strconv.ParseUint(value, 16, 64)
	case "VmLck":
		s.VMLock, err = kilobytes(value)
	case "VmHWM":
		s.VMPeak, err = kilobytes(value)
	case "ShdPnd":
		s.SigPending, err = strconv.ParseUint(value, 16, 64)
	case "SigPnd":
		s.SigWaiting, err = strconv.ParseUint(value, 16, 64)
	case "SigBlk":
		s.SigBlocked, err = strconv.ParseUint(value, 16, 64)
	case "SigIgn":
		s.SigIgnored, err = strconv.ParseUint(value, 16, 64)
	case "SigCgt":
		s.SigCaught, err = strconv.ParseUint(value, 16, 64)
	case "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches":
		var n uint64
		n, err = strconv.ParseUint(value, 10, 64)
		s.Switches += n
		if key == "voluntary_ctxt_switches" {
			s.Waits = n
		}
	case "NoNewPrivs":
		s.NoNewPrivs = value == "1"
	case "Seccomp":
		s.Seccomp, err = strconv.Atoi(value)
	case "x86_Thread_features":
		s.ThreadFeatures = value
	}
	return err
}

func atois(words []string) ([]int, error) {
	out := make([]int, len(words))
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// kilobytes reads an amount of memory, such as "12 kB", and returns it in bytes.
func kilobytes(value string) (uint64, error) {
	kb, err := strconv.ParseUint(strings.TrimSuffix(value, " kB"), 10, 54)
	return kb << 10, err
}
