package realtest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownThread makes the kernel end the child when the thread that started it is
// gone, so that a test binary that is killed leaves nothing running.
func ownThread(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// canTrace proves the permission instead of guessing it from capabilities,
// Yama and seccomp: it starts a child that asks to be traced.
func canTrace() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The child stops at its first instruction, so what it runs never runs.
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, LivePtrace, err)
	}
	killErr := cmd.Process.Kill()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || status.Exited() || status.Signaled() {
			break
		}
	}
	return errors.Join(killErr, cmd.Process.Release())
}

// runsI386 runs the smallest i386 program, exit(0): whether a kernel emulates
// i386 depends on its build, its command line and the container's seccomp.
func runsI386() error {
	dir, err := os.MkdirTemp("", "callreel-i386-")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "exit0")
	err = os.WriteFile(path, exit0I386(), 0o700)
	if err == nil {
		switch err = exec.Command(path).Run(); {
		case errors.Is(err, unix.ENOEXEC): // as under a hypervisor without it
			err = fmt.Errorf("%w: %s: %w: %w", ErrMissing, I386, ErrMachine, err)
		case err != nil:
			err = fmt.Errorf("%w: %s: %w", ErrMissing, I386, err)
		}
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// exit0I386 is an ELF32 file of one segment that calls exit(0).
func exit0I386() []byte {
	const base, headers = 0x08048000, 52 + 32
	code := []byte{
		0x31, 0xdb, // xor %ebx,%ebx
		0x31, 0xc0, // xor %eax,%eax
		0x40,       // inc %eax
		0xcd, 0x80, // int $0x80
	}
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a bytes.Buffer takes every write
	header := elf.Header32{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: uint32(elf.EV_CURRENT),
		Entry: base + headers, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	put(header)
	size := uint32(headers + len(code))
	put(elf.Prog32{
		Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Filesz: size, Memsz: size,
		Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000,
	})
	put(code)
	return b.Bytes()
}

// canSample, canBreak and canCount prove the permission by an event of this process's own.
func canSample() error {
	return canHave(PerfEvents, unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK})
}

// canBreak sets one and runs over it: under some hypervisors a breakpoint can be set, and is never hit.
func canBreak() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	size := uint64(8) // HW_BREAKPOINT_X, of which the length is that of a long on x86 and of an instruction on arm64
	if runtime.GOARCH == "arm64" {
		size = 4
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_BREAKPOINT, Bp_type: 4, Ext1: uint64(reflect.ValueOf(passing).Pointer()), Ext2: size,
		Size: unix.PERF_ATTR_SIZE_VER5, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, Breakpoints, err)
	}
	defer unix.Close(fd)
	passing()
	var count [8]byte
	if _, err := unix.Read(fd, count[:]); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, Breakpoints, err)
	}
	if count == [8]byte{} {
		return fmt.Errorf("%w: %s: %w: they are never hit", ErrMissing, Breakpoints, ErrMachine)
	}
	return nil
}

// passing is run over by canBreak.
//
//go:noinline
func passing() { _ = os.Getpagesize() }

func canCount() error {
	return canHave(InstructionCounter, unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS})
}

func canHave(c Capability, attr unix.PerfEventAttr) error {
	attr.Size = unix.PERF_ATTR_SIZE_VER5
	attr.Bits = unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMissing, c, err)
	}
	return unix.Close(fd)
}
