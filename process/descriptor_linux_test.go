package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// makeMemfd makes the stopped target open a memfd that can be sealed.
func makeMemfd(s *Stopped) (uint64, error) {
	const sealable = 2
	res, err := batchInTarget(s, []Call{{Number: unix.SYS_MEMFD_CREATE, Args: [6]uint64{0, sealable}, Data: []byte("taken\x00"), DataArg: 0}})
	if err != nil {
		return 0, err
	}
	return res[0].Value, res[0].Err()
}

// openThere makes the stopped target open a file.
func openThere(s *Stopped, path string, flags uint64) (uint64, error) {
	const cwd = unix.AT_FDCWD & (1<<64 - 1)
	res, err := batchInTarget(s, []Call{{Number: unix.SYS_OPENAT, Args: [6]uint64{cwd, 0, flags, 0}, Data: []byte(path + "\x00"), DataArg: 1}})
	if err != nil {
		return 0, err
	}
	return res[0].Value, res[0].Err()
}

func TestAMemfdIsTakenOnlyIfItIsOne(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	// Each puts something else in the place of the descriptor.
	swaps := map[string]func(s *Stopped, fd uint64) error{
		"a file":           func(s *Stopped, fd uint64) error { return putThere(s, fd, file, unix.O_RDWR) },
		"a file by O_PATH": func(s *Stopped, fd uint64) error { return putThere(s, fd, file, unix.O_PATH) },
		"a FIFO":           func(s *Stopped, fd uint64) error { return putThere(s, fd, fifo, unix.O_RDWR) },
		"a FIFO by O_PATH": func(s *Stopped, fd uint64) error { return putThere(s, fd, fifo, unix.O_PATH) },
		"a device":         func(s *Stopped, fd uint64) error { return putThere(s, fd, "/dev/zero", unix.O_RDWR) },
		"a file in tmpfs": func(s *Stopped, fd uint64) error {
			const temporary = unix.O_TMPFILE | unix.O_RDWR
			return putThere(s, fd, "/dev/shm", temporary)
		},
		"nothing": func(s *Stopped, fd uint64) error { _, err := onceInTarget(s, unix.SYS_CLOSE, fd); return err },
		"one with bytes": func(s *Stopped, fd uint64) error {
			_, err := inTarget(s, unix.SYS_FTRUNCATE, fd, 4096)
			return err
		},
		"a sealed one": func(s *Stopped, fd uint64) error {
			_, err := inTarget(s, unix.SYS_FCNTL, fd, unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
			return err
		},
		"one that can't be written": func(s *Stopped, fd uint64) error {
			_, err := inTarget(s, unix.SYS_FCNTL, fd, unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
			return err
		},
	}
	g := startTarget(t, build(t, "sharing.c", "gcc"))
	p := openTarget(t, g)
	for name, swap := range swaps {
		t.Run(name, func(t *testing.T) {
			stop(t, p, func(s *Stopped) error {
				fd, err := makeMemfd(s)
				if err != nil {
					return err
				}
				if err := swap(s, fd); err != nil {
					return err
				}
				m, err := s.TakeMemfd(int(fd))
				if err == nil {
					t.Errorf("taken: %+v", m)
					unix.Close(m.FD)
				} else if name != "nothing" && !errors.Is(err, ErrNotMemfd) {
					t.Errorf("refused for another reason: %v", err)
				}
				if name == "nothing" {
					return nil
				}
				_, err = onceInTarget(s, unix.SYS_CLOSE, fd)
				return err
			})
		})
	}
	stop(t, p, func(s *Stopped) error {
		fd, err := makeMemfd(s)
		if err != nil {
			return err
		}
		for way, take := range map[string]func() (Memfd, error){
			"either": func() (Memfd, error) { return s.TakeMemfd(int(fd)) },
			"without pidfd_getfd": func() (Memfd, error) {
				own, err := s.openMemfd(int(fd))
				if err != nil {
					return Memfd{}, err
				}
				return checkMemfd(own)
			},
		} {
			m, err := take()
			if err != nil {
				t.Errorf("%s: %v", way, err)
				continue
			}
			if _, err := unix.Pwrite(m.FD, []byte("x"), 0); err != nil {
				t.Errorf("%s: %v", way, err)
			}
			if err := errors.Join(unix.Ftruncate(m.FD, 0), unix.Close(m.FD)); err != nil {
				t.Errorf("%s: %v", way, err)
			}
			at, err := inTarget(s, unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_SHARED, fd, 0)
			if err != nil {
				return err
			}
			maps, err := p.Maps()
			if err != nil {
				return err
			}
			for _, x := range maps {
				if x.Start == at && (x.Dev != m.Dev || x.Inode != m.Inode) {
					t.Errorf("%s: mapped %d:%d, taken %d:%d", way, x.Dev, x.Inode, m.Dev, m.Inode)
				}
			}
			if _, err := onceInTarget(s, unix.SYS_MUNMAP, at, 4096); err != nil {
				return err
			}
		}
		_, err = onceInTarget(s, unix.SYS_CLOSE, fd)
		return err
	})
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

// putThere makes the stopped target put a file in the place of a descriptor.
func putThere(s *Stopped, fd uint64, path string, flags uint64) error {
	other, err := openThere(s, path, flags)
	if err != nil {
		return err
	}
	if _, err := inTarget(s, unix.SYS_DUP3, other, fd, 0); err != nil {
		return err
	}
	_, err = onceInTarget(s, unix.SYS_CLOSE, other)
	return err
}

func TestProcessThatSharesTheDescriptorsIsFound(t *testing.T) {
	needKcmp(t)
	g := startTarget(t, build(t, "sharing.c", "gcc"))
	p := openTarget(t, g)
	if pid, name, err := p.DescriptorsShared(); pid != 0 || name != "" || err != nil {
		t.Errorf("alone: %d (%s), %v", pid, name, err)
	}
	for range 3 {
		other := g.say("files")
		if pid, name, err := p.DescriptorsShared(); pid != other || name != p.Comm() || err != nil {
			t.Errorf("beside %d: %d (%s), %v", other, pid, name, err)
		}
		g.say("end")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

// An identity is the same from outside a PID namespace and from within.
func TestIdentityIsOfOneProcess(t *testing.T) {
	g, h := startTarget(t, build(t, "sharing.c", "gcc")), startTarget(t, build(t, "sharing.c", "gcc"))
	p, q := openTarget(t, g), openTarget(t, h)
	a, err := p.Identity()
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.Identity()
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Identity()
	if err != nil || !a.Is(again) {
		t.Errorf("%+v and then %+v, %v", a, again, err)
	}
	if a.Is(b) || a.PIDNamespace == 0 || a.PID != p.Pid() || a.Start != p.StartTime() {
		t.Errorf("%+v and %+v", a, b)
	}
	later := a
	if later.Start++; a.Is(later) {
		t.Error("one that has its ID later is it, too")
	}
	if later.TimeNamespace++; !a.Is(later) { // start times can't be compared
		t.Error("in another time namespace it isn't itself")
	}
	g.finish()
	h.finish()
}
