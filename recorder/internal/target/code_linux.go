package target

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
)

// codeName is the name of the memory of arenas, and codeMapping what /proc/PID/maps shows for it, by which forked children are known to have
// them. Where sharesCode says so it is mapped for reading and executing in the target, and for writing only in the recorder: an exchange of
// eight aligned bytes there is one for the target's threads as well, which no write by ptrace or /proc promises.
const (
	codeName    = "callreel-code"
	codeMapping = "/memfd:" + codeName
)

// shareCode makes the file of the arenas' code, and maps it here if it is shared. It returns the target's descriptor of it. Where there
// can't be such a file it is noFile, unless it is needed for probes that are made on the first call.
func (s *Target) shareCode(st *process.Stopped, arenas []*Arena) (there uint64, err error) {
	if !s.lang.codeInFile {
		return noFile, nil
	}
	there, own, err := s.memfd(st, codeName, execMemfd)
	if err != nil && (s.Runtime.Lazy && sharesCode || !errors.Is(err, refusal.Err)) {
		return noFile, err
	}
	if err != nil {
		return noFile, nil
	}
	defer unix.Close(own.FD)
	readOnly, err := s.mapCode(own, arenas)
	if err == nil && !readOnly && s.privileged && sharesCode {
		// What it forks, and has fewer rights, could make its own mapping writable, and change the code that this one runs.
		if s.Runtime.Lazy {
			err = fmt.Errorf("callreel: process %d: %w: it has privileges, and probes that are made on the first call can't be kept from what it forks before Linux 5.1; leave --lazy out",
				s.Process.Pid(), refusal.Err)
		}
		unshareCode(arenas)
		_, e := st.SyscallBatch([]process.Call{{Number: unix.SYS_CLOSE, Args: [6]uint64{there}}})
		return noFile, errors.Join(err, e)
	}
	if err != nil {
		unshareCode(arenas)
		_, e := st.SyscallBatch([]process.Call{{Number: unix.SYS_CLOSE, Args: [6]uint64{there}}})
		return noFile, errors.Join(err, e)
	}
	return there, nil
}

// mapCode gives the file its size and maps it here if it is shared, before it is sealed against being mapped for writing by anybody else.
func (s *Target) mapCode(own process.Memfd, arenas []*Arena) (readOnly bool, err error) {
	size := uint64(0)
	for _, a := range arenas {
		size += a.Size
	}
	if err := recovery.GiveSize(own.FD, size); err != nil {
		return false, fmt.Errorf("callreel: memory for stubs: %w", err)
	}
	at := int64(0)
	for _, a := range arenas {
		if sharesCode {
			if a.Mem, err = unix.Mmap(own.FD, at, int(a.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
				return false, fmt.Errorf("callreel: mapping memory for stubs, %d bytes: %w", a.Size, err)
			}
		}
		a.Dev, a.Inode = own.Dev, own.Inode
		at += int64(a.Size)
	}
	return recovery.Seal(own.FD)
}

// unshareCode lets go of the arenas' code on our side.
func unshareCode(arenas []*Arena) {
	for _, a := range arenas {
		if a.Mem != nil {
			_ = unix.Munmap(a.Mem) // it is ours and mapped, so it can't fail
		}
		a.Mem, a.Dev, a.Inode = nil, 0, 0
	}
}
