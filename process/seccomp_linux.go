package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	seccompStrict = 1
	seccompFilter = 2
	maxFilters    = 1024 // the kernel allows 32768 instructions in all
)

// SeccompAllows says whether the thread's seccomp state lets the system call
// pass with these arguments. Reading filters takes CAP_SYS_ADMIN; without it
// the error is an ErrSeccomp.
func (t *Thread) SeccompAllows(number uintptr, args ...uint64) (bool, error) {
	if err := t.check(); err != nil {
		return false, err
	}
	mode, err := t.SeccompMode()
	if err != nil || mode == 0 {
		return mode == 0, err
	}
	call := Call{Number: number}
	copy(call.Args[:], args)
	filters, err := t.filters(mode)
	if err != nil {
		return false, t.seccompError(uint64(number), err.Error())
	}
	verdict, err := Verdict(filters, syscallData(call, 0))
	if err != nil {
		return false, t.seccompError(uint64(number), err.Error())
	}
	return Passes(verdict), nil
}

// SeccompMode returns the thread's seccomp mode: 0 none, 1 strict, 2 filter. It is
// cheap, for it asks /proc only if it must: without CAP_SYS_ADMIN, and without a look at
// the thread just before the stop, what that saw being the answer otherwise.
func (t *Thread) SeccompMode() (int, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	_, err := ptracePointer(unix.PTRACE_SECCOMP_GET_FILTER, t.TID, 0, nil)
	if err == nil {
		return seccompFilter, nil
	}
	if seen, ok := t.s.sighted[t.TID]; ok && !(errors.Is(err, unix.EINVAL) && seen.seccomp == seccompFilter) {
		return seen.seccomp, nil
	}
	status, err := readStatus(t.s.p.pid, t.TID)
	return status.Seccomp, err
}

func syscallData(c Call, ip uint64) SyscallData {
	return SyscallData{Number: uint32(c.Number), Arch: arch.auditArch(), InstructionPointer: ip, Args: c.Args}
}

// verdict returns an ErrSeccomp unless the call passes. Arguments that are
// addresses are not known yet; filters cannot follow them anyway.
func (t *Thread) verdict(filters []Filter, c Call, ip uint64) error {
	verdict, err := Verdict(filters, syscallData(c, ip))
	if err != nil {
		return t.seccompError(uint64(c.Number), err.Error())
	}
	if !Passes(verdict) {
		return t.seccompError(uint64(c.Number), fmt.Sprintf("it answers %#x", verdict))
	}
	return nil
}

func (t *Thread) seccompError(number uint64, why string) error {
	return &SeccompError{TID: t.TID, Number: number, Why: why}
}

// filters reads the thread's filters, the newest first.
func (t *Thread) filters(mode int) ([]Filter, error) {
	if mode == seccompStrict {
		return nil, errors.New("it is in strict mode")
	}
	if mode != seccompFilter {
		return nil, fmt.Errorf("it is in the unknown mode %d", mode)
	}
	var out []Filter
	for i := 0; i < maxFilters; i++ {
		f, err := t.filter(i)
		switch {
		case errors.Is(err, unix.ENOENT):
			return out, nil
		case errors.Is(err, unix.EACCES):
			return nil, errors.New("reading its filters takes CAP_SYS_ADMIN (root) and no filter of our own")
		case err != nil:
			return nil, fmt.Errorf("its filter %d cannot be read: %w", i, err)
		}
		out = append(out, f)
	}
	return nil, fmt.Errorf("it has more than %d filters", maxFilters)
}

func (t *Thread) filter(i int) (Filter, error) {
	n, err := ptracePointer(unix.PTRACE_SECCOMP_GET_FILTER, t.TID, uintptr(i), nil)
	if err != nil {
		return nil, err
	}
	if n <= 0 || n > bpfMaxLen {
		return nil, fmt.Errorf("%d instructions", n)
	}
	raw := make([]byte, 8*n)
	got, err := ptracePointer(unix.PTRACE_SECCOMP_GET_FILTER, t.TID, uintptr(i), unsafe.Pointer(&raw[0]))
	if err != nil {
		return nil, err
	}
	return decodeFilter(raw[:8*min(got, n)]), nil
}

func decodeFilter(raw []byte) Filter {
	f := make(Filter, len(raw)/8)
	for i := range f {
		b := raw[8*i:]
		f[i] = FilterInstruction{
			Code: binary.LittleEndian.Uint16(b), JT: b[2], JF: b[3], K: binary.LittleEndian.Uint32(b[4:]),
		}
	}
	return f
}
