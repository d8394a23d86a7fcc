package process

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ended is how a process has ended.
type Ended struct {
	Code   int            // exit code
	Signal syscall.Signal // that has killed it; 0 if it has exited
}

// Ended returns how the process has ended, if the system says: to others than its parent Linux tells that while it is a zombie, and since
// 6.15 also later.
func (p *Process) Ended() (e Ended, ok bool) {
	status, ok := p.exitStatus()
	if !ok {
		status, ok = p.zombieStatus()
	}
	if !ok {
		return e, false
	}
	ws := unix.WaitStatus(status)
	if ws.Signaled() {
		return Ended{Signal: ws.Signal()}, true
	}
	return Ended{Code: ws.ExitStatus()}, ws.Exited()
}

// exitStatus asks by the pidfd (linux/pidfd.h, struct pidfd_info in its first version).
func (p *Process) exitStatus() (uint32, bool) {
	const (
		size     = 64
		exitCode = 60
		infoExit = 1 << 3
		getInfo  = 3<<30 | size<<16 | 0xFF<<8 | 11
	)
	if p.pidfd < 0 {
		return 0, false
	}
	var info [size]byte
	binary.LittleEndian.PutUint64(info[:], infoExit)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p.pidfd), getInfo, uintptr(unsafe.Pointer(&info)))
	if errno != 0 || binary.LittleEndian.Uint64(info[:])&infoExit == 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(info[exitCode:]), true
}

// zombieStatus reads it out of /proc (proc_pid_stat(5), exit_code).
func (p *Process) zombieStatus() (uint32, bool) {
	text, err := readProc(procPath(p.pid, "stat"))
	if err != nil {
		return 0, false
	}
	st, err := parseStat(text)
	if err != nil || st.startTime != p.start || !st.ended() {
		return 0, false
	}
	words := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const field = 52 - 3
	if len(words) <= field {
		return 0, false
	}
	v, err := strconv.ParseUint(string(words[field]), 10, 32)
	return uint32(v), err == nil
}
