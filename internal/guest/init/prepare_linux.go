package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/guest"
)

// A mount is one of the kernel's file systems.
type mount struct{ kind, at, options string }

// prepare loads modules, finds the disks and makes Debian's userland the root.
func prepare() error {
	for _, m := range []mount{{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", ""}} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := loadModules(); err != nil {
		return err
	}
	root, err := disk(guest.DiskRoot)
	if err != nil {
		return err
	}
	const at = "/newroot"
	if err := unix.Mount(root, at, "ext4", unix.MS_NOATIME, "nobarrier"); err != nil {
		return fmt.Errorf("mount %s: %w", root, err)
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := os.MkdirAll(at+dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(dir, at+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	// As switch_root(8) does.
	if err := os.Chdir(at); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := errors.Join(unix.Chroot("."), os.Chdir("/")); err != nil {
		return err
	}
	return settle()
}

// settle mounts what programs expect, and brings up the loopback device.
func settle() error {
	for _, m := range []mount{
		{"tmpfs", "/tmp", "mode=1777"}, {"tmpfs", "/run", "mode=755"}, {"tmpfs", "/dev/shm", "mode=1777"}, {"devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666"},
		{"cgroup2", "/sys/fs/cgroup", ""}, {"tracefs", "/sys/kernel/tracing", ""}, {"debugfs", "/sys/kernel/debug", ""},
	} {
		err := os.MkdirAll(m.at, 0o755)
		if err == nil {
			err = unix.Mount(m.kind, m.at, m.kind, 0, m.options)
		}
		if err != nil && strings.HasPrefix(m.at, "/sys") {
			continue // this kernel hasn't that
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	cache, err := disk(guest.DiskCache)
	if err != nil {
		return err
	}
	if err := os.MkdirAll("/root/.cache", 0o755); err != nil {
		return err
	}
	if err := unix.Mount(cache, "/root/.cache", "ext4", unix.MS_NOATIME, "nobarrier"); err != nil {
		return fmt.Errorf("mount %s: %w", cache, err)
	}
	for link, to := range map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	_ = unix.Sethostname([]byte("guest"))
	return loopback()
}

// loopback is all that the guest has of a network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	}
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

func loadModules() error {
	files, err := filepath.Glob("/" + guest.ModulesDir + "/*") // in the order of names
	if err != nil {
		return err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(unix.FinitModule(int(f.Fd()), "", 0), f.Close())
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

// patience is for devices, which the kernel looks for on its own.
const patience = 30 * time.Second

// disk finds a disk by its serial number.
func disk(serial string) (string, error) {
	return find("/sys/block/*/serial", serial, func(dir string) string { return "/dev/" + filepath.Base(dir) })
}

// port finds the port to the host.
func port() (string, error) {
	return find("/sys/class/virtio-ports/*/name", guest.Port, func(dir string) string { return "/dev/" + filepath.Base(dir) })
}

// find waits until one of the files that match pattern holds text, and returns the device of its folder.
func find(pattern, text string, device func(dir string) string) (string, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if said, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(said)) != text {
				continue
			}
			if path := device(filepath.Dir(file)); exists(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the host has given no %q", text)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
