package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// A Machine is how a guest is emulated.
type Machine struct {
	CPU       string // as qemu-system-aarch64 -cpu takes it
	CPUs      int
	Megabytes int           // of memory
	Limit     time.Duration // for everything
	// Counts makes the emulated processor count instructions, so that a guest's perf events can. There is one processor then, whatever CPUs says:
	// QEMU counts those of all of them together. It is slower.
	Counts bool
}

// ErrGuest: the guest has not come to its end: it has panicked, or hangs, or could not be started.
var ErrGuest = errors.New("the guest has not come to its end")

// Run boots u with program as its init, runs the jobs of payload, a tar file, and hands on each event. What the guest's kernel says goes to
// the file console. The guest is ended when Run returns, whatever happens.
func (m Machine) Run(ctx context.Context, u *Userland, program, payload, console string, each func(Event)) error {
	dir, err := os.MkdirTemp("", "callreel-guest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	initrd := filepath.Join(dir, "initrd")
	f, err := os.Create(initrd)
	if err != nil {
		return err
	}
	if err := errors.Join(writeInitrd(f, program, u.Modules), f.Close()); err != nil {
		return fmt.Errorf("guest: initial file system: %w", err)
	}
	cache, release, err := u.holdCache(ctx, dir)
	if err != nil {
		return err
	}
	defer release()

	ctx, cancel := context.WithTimeout(ctx, m.Limit)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go untilStuck(ctx, console, stop)
	cmd := exec.CommandContext(ctx, "qemu-system-aarch64", m.arguments(u, initrd, cache, payload, console)...)
	// The kernel goes by the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithUs(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("guest: %w: install qemu-system-arm", err)
	}
	done, readErr := readEvents(out, each)
	if !done {
		cancel() // what it says is no longer understood, or it has gone
	}
	waitErr := cmd.Wait()
	switch {
	case done:
		return nil
	case errors.Is(context.Cause(ctx), ErrStuck):
		return fmt.Errorf("%w: %w", ErrGuest, ErrStuck)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w within %v", ErrGuest, m.Limit)
	}
	return fmt.Errorf("%w: %w", ErrGuest, errors.Join(readErr, waitErr))
}

func (m Machine) arguments(u *Userland, initrd, cache, payload, console string) []string {
	cpu := m.CPU
	if cpu == "max" {
		// Signatures of pointers by a cipher of QEMU's own: the architecture's takes most of the time, and means the same.
		cpu += ",pauth-impdef=on"
	}
	accel, cpus := "tcg,thread=multi,tb-size=512", m.CPUs
	if m.Counts {
		accel, cpus = "tcg,thread=single,tb-size=512", 1
	}
	args := []string{
		"-M", "virt", "-cpu", cpu, "-smp", strconv.Itoa(cpus), "-m", strconv.Itoa(m.Megabytes),
		"-accel", accel,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
		"-kernel", u.Kernel, "-initrd", initrd,
		// A kernel that panics restarts, which ends QEMU.
		"-append", "console=ttyAMA0 panic=-1 quiet loglevel=5 mitigations=off",
		"-serial", "file:" + console,
		"-device", "virtio-rng-pci",
		"-device", "virtio-serial-pci", "-chardev", "file,id=events,path=/proc/self/fd/1", "-device", "virtserialport,chardev=events,name=" + Port,
	}
	if m.Counts {
		args = append(args, "-icount", "shift=3") // 8 ns of the guest's time each
	}
	for _, d := range []struct{ serial, file, options string }{
		{DiskRoot, u.Root, "snapshot=on"}, {DiskCache, cache, "cache=unsafe"}, {DiskPayload, payload, "readonly=on"},
	} {
		args = append(args,
			"-drive", fmt.Sprintf("if=none,id=%s,format=raw,file=%s,%s", d.serial, d.file, d.options),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=%s,serial=%s", d.serial, d.serial))
	}
	return args
}

// maxLine bounds an event, in bytes.
const maxLine = 1 << 20

// readEvents reads until the guest says that all is done.
func readEvents(out interface{ Read([]byte) (int, error) }, each func(Event)) (done bool, err error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return done, fmt.Errorf("what the guest says: %q: %w", lines.Text(), err)
		}
		each(e)
		switch e.Kind {
		case Failed:
			return false, fmt.Errorf("%s", e.Data)
		case AllDone:
			done = true
		}
	}
	return done, lines.Err()
}
