package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// chunk bounds one transfer: the kernel bounces /proc/PID/mem through single
// pages anyway, and a long one would keep the target's memory map busy.
const chunk = 1 << 20

// ReadAt fills buf from the process's memory at addr. When it reads less it
// says at which address the memory ended (ErrNoMapping).
func (p *Process) ReadAt(buf []byte, addr uint64) (int, error) {
	return p.transfer(buf, addr, "read", p.mem.ReadAt)
}

// WriteAt writes buf to the process's memory at addr. Pages that the process
// itself may not write, its code for one, are written too: the process gets a
// private copy of the page and the file stays as it is.
func (p *Process) WriteAt(buf []byte, addr uint64) (int, error) {
	return p.transfer(buf, addr, "write", p.mem.WriteAt)
}

func (p *Process) transfer(buf []byte, addr uint64, verb string, move func([]byte, int64) (int, error)) (int, error) {
	if addr > 1<<63-1-uint64(len(buf)) {
		return 0, fmt.Errorf("process %d: %s %d bytes at %#x: %w: not a user address", p.pid, verb, len(buf), addr, ErrNoMapping)
	}
	done := 0
	for done < len(buf) {
		n, err := move(buf[done:min(done+chunk, len(buf))], int64(addr)+int64(done))
		done += n
		if err != nil {
			return done, p.memoryError(verb, len(buf), addr+uint64(done), err)
		}
	}
	return done, nil
}

func (p *Process) memoryError(verb string, size int, addr uint64, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ESRCH):
		// The memory that was opened has lost its last thread.
		if _, mapsErr := p.Maps(); mapsErr == nil {
			return fmt.Errorf("process %d: %s at %#x: %w", p.pid, verb, addr, ErrExec)
		}
		return fmt.Errorf("process %d: %s at %#x: %w", p.pid, verb, addr, ErrNoProcess)
	case errors.Is(err, unix.EIO), errors.Is(err, unix.EFAULT):
		hint := ""
		if verb == "write" {
			hint = "; if it is mapped, the kernel forbids writing to code (boot with proc_mem.force_override=ptrace or always)"
		}
		return fmt.Errorf("process %d: %s %d bytes: %w at %#x%s", p.pid, verb, size, ErrNoMapping, addr, hint)
	}
	return fmt.Errorf("process %d: %s %d bytes at %#x: %w", p.pid, verb, size, addr, err)
}

// A Vec is one piece of memory for ReadVec.
type Vec struct {
	Addr uint64
	Buf  []byte
}

const maxVec = 1024 // UIO_MAXIOV

// ReadVec reads many pieces with few system calls (process_vm_readv). It stops
// at the first piece that is not wholly readable and returns how many were
// read, with an ErrNoMapping that names the piece's address.
func (p *Process) ReadVec(vecs []Vec) (int, error) {
	done := 0
	for done < len(vecs) {
		batch := vecs[done:min(done+maxVec, len(vecs))]
		n, err := p.readVecBatch(batch)
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (p *Process) readVecBatch(vecs []Vec) (int, error) {
	local := make([]unix.Iovec, 0, len(vecs))
	remote := make([]unix.RemoteIovec, 0, len(vecs))
	for _, v := range vecs {
		if len(v.Buf) == 0 {
			continue
		}
		l := unix.Iovec{Base: &v.Buf[0]}
		l.SetLen(len(v.Buf))
		local = append(local, l)
		remote = append(remote, unix.RemoteIovec{Base: uintptr(v.Addr), Len: len(v.Buf)})
	}
	if len(local) == 0 {
		return len(vecs), nil
	}
	got, err := unix.ProcessVMReadv(p.pid, local, remote, 0)
	if errors.Is(err, unix.ESRCH) {
		got, err = unix.ProcessVMReadv(p.view(), local, remote, 0)
	}
	if err != nil && !errors.Is(err, unix.EFAULT) {
		return 0, p.memoryError("read", 0, vecs[0].Addr, err)
	}
	for i, v := range vecs {
		if len(v.Buf) > max(got, 0) {
			return i, p.memoryError("read", len(v.Buf), v.Addr, unix.EFAULT)
		}
		got -= len(v.Buf)
	}
	return len(vecs), nil
}

// holds says whether those bytes are there.
func (p *Process) holds(addr uint64, code []byte) bool {
	buf := make([]byte, len(code))
	_, err := p.ReadAt(buf, addr)
	return err == nil && bytes.Equal(buf, code)
}
