package process

import (
	"errors"
	"os"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

func TestSeccompFiltersAreReadAndObeyed(t *testing.T) {
	if !HasCapability(unix.CAP_SYS_ADMIN) {
		realtest.NeedThat(t, "CAP_SYS_ADMIN, to read filters", os.ErrPermission)
	}
	for _, c := range []struct {
		state  string
		memfd  error // what a remote memfd_create ends with
		getpid error
	}{
		{"memfd-kills", ErrSeccomp, nil},
		{"memfd-fails", ErrSeccomp, nil},
		{"other-filtered", nil, nil},
		{"no-sigreturn", ErrSeccomp, ErrSeccomp},
		{"no-pselect", nil, nil},
		{"strict", ErrSeccomp, ErrSeccomp},
	} {
		t.Run(c.state, func(t *testing.T) {
			g := startTarget(t, build(t, "states.c", "gcc"), c.state)
			if c.state == "strict" {
				waitForState(t, g.pid(), 'S')
			}
			p := openTarget(t, g)
			stop(t, p, func(s *Stopped) error {
				_, err := s.SyscallBatch([]Call{{Number: unix.SYS_MEMFD_CREATE, Data: []byte("x\x00")}})
				if !errors.Is(err, c.memfd) {
					t.Errorf("memfd_create: %v, want %v", err, c.memfd)
				}
				var typed *SeccompError
				if c.memfd != nil && !errors.As(err, &typed) {
					t.Errorf("memfd_create: %v names no system call", err)
				}
				_, err = s.Syscall(unix.SYS_GETPID)
				if !errors.Is(err, c.getpid) {
					t.Errorf("getpid: %v, want %v", err, c.getpid)
				}
				status, statusErr := p.Status()
				if mode, err := s.Threads()[0].SeccompMode(); errors.Join(err, statusErr) != nil || mode != status.Seccomp {
					t.Errorf("mode %d, want %d, %v", mode, status.Seccomp, errors.Join(err, statusErr))
				}
				allowed, err := s.Threads()[0].SeccompAllows(unix.SYS_MEMFD_CREATE)
				if c.state != "strict" && c.state != "no-sigreturn" && (err != nil || allowed != (c.memfd == nil)) {
					t.Errorf("memfd_create allowed: %v, %v", allowed, err)
				}
				return nil
			})
			if text := g.finish(); text != "ok\n" {
				t.Errorf("target: %s", text)
			}
		})
	}
}
