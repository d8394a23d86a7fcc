package owner

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const wordAt = 16

var size = 2 * page()

// TestMain is also the process that owns memory and is killed.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("CALLREEL_OWNER_OF")); err == nil {
		if err := ownAndWait(n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// ownAndWait owns the memory of the descriptors from 3 on, says so, and waits for its end.
func ownAndWait(n int) error {
	o, err := New(wordAt)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := o.Map(3+i, size); err != nil {
			return err
		}
	}
	fmt.Println("owned")
	select {}
}

func memfd(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("owner", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "owner")
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	return f
}

func wordOf(t *testing.T, f *os.File) uint32 {
	t.Helper()
	var b [4]byte
	if _, err := f.ReadAt(b[:], wordAt); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint32(b[:])
}

func TestAKilledOwnerIsSignedOffByTheKernel(t *testing.T) {
	for name, attr := range map[string]*syscall.SysProcAttr{
		"here":                     nil,
		"in another PID namespace": {Cloneflags: syscall.CLONE_NEWPID},
	} {
		t.Run(name, func(t *testing.T) {
			if attr != nil && os.Geteuid() != 0 {
				t.Skip("this test lacks the capability to make a PID namespace: it isn't root")
			}
			files := []*os.File{memfd(t), memfd(t), memfd(t)}
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "CALLREEL_OWNER_OF="+strconv.Itoa(len(files)))
			cmd.ExtraFiles, cmd.SysProcAttr, cmd.Stderr = files, attr, os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 16)); err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if w := wordOf(t, f); !Lives(w) {
					t.Errorf("the word of a process that runs is %#x", w)
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
			for _, f := range files {
				if w := wordOf(t, f); Lives(w) || w == 0 {
					t.Errorf("the word of a killed process is %#x", w)
				}
			}
		})
	}
}

func TestReleasedMemoryHasNoOwner(t *testing.T) {
	o, err := New(wordAt)
	if err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	var all []*Memory
	for range 4 {
		f := memfd(t)
		m, err := o.Map(int(f.Fd()), size)
		if err != nil {
			t.Fatal(err)
		}
		files, all = append(files, f), append(all, m)
	}
	lives := func(want ...bool) {
		t.Helper()
		for i, f := range files {
			if w := wordOf(t, f); Lives(w) != want[i] {
				t.Errorf("word %d is %#x", i, w)
			}
		}
	}
	lives(true, true, true, true)
	all[1].Release()
	if err := all[3].Close(); err != nil {
		t.Error(err)
	}
	lives(true, false, true, false)
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
	lives(false, false, true, false)
	o.Close()
	lives(false, false, false, false)
	all[1].Bytes[0] = 1 // it is still mapped
}
