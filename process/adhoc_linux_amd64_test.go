package process

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	extraRoles["unsafe"] = func(s *Stopped) error {
		g, err := s.p.findGadgets()
		if err != nil {
			return err
		}
		_, err = s.unsafeBatch(g, []Call{{Number: unix.SYS_GETPID}})
		return err
	}
	extraRoles["step"] = func(s *Stopped) error {
		for _, t := range s.Threads() {
			_, err := t.Step(20, func(*Regs) bool { return false })
			if err != nil && !strings.Contains(err.Error(), "system call") {
				return err
			}
		}
		return nil
	}
}

func TestAdhoc(t *testing.T) {
	for _, role := range []string{"unsafe", "step"} {
		t.Run(role, func(t *testing.T) {
			g := startTarget(t, build(t, "selfcheck.c", "gcc"))
			killOften(t, g, role, 200)
			t.Log(g.finish())
		})
	}
}
