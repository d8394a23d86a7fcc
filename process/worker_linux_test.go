package process

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestKernelsOwnThreadsAreLeftOut(t *testing.T) {
	for _, mode := range []string{"poll", "work"} {
		t.Run(mode, func(t *testing.T) {
			path := build(t, "uring.c", "gcc")
			probe := exec.Command(path, mode)
			_ = probe.Run()
			if probe.ProcessState.ExitCode() == 77 {
				realtest.NeedThat(t, "io_uring", errors.ErrUnsupported)
			}
			g := startTarget(t, path, mode)
			p := openTarget(t, g)
			workers := 0
			for _, info := range must(p.Threads()) {
				if info.Worker {
					workers++
				}
			}
			if workers == 0 {
				t.Fatal("the kernel has made no thread")
			}
			for range 20 {
				stop(t, p, func(s *Stopped) error {
					if n := len(s.Threads()); n != 1 || s.Threads()[0].TID != p.Pid() {
						t.Errorf("%d threads stopped, want the first only", n)
					}
					if _, err := s.TIDOffset(); err != nil {
						t.Error(err)
					}
					return inject(s)
				})
			}
			if text := g.finish(); text != "ok\n" {
				t.Errorf("target: %s", text)
			}
		})
	}
}
