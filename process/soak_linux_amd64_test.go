package process

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSoak(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for range 8 {
				g := startTarget(t, build(t, "selfcheck.c", "gcc"))
				sent := killOften(t, g, "inject-each", 300)
				stopc := make(chan bool)
				go func() {
					select {
					case <-stopc:
						return
					case <-time.After(6 * time.Second):
					}
					for _, tid := range must(taskIDs(g.pid())) {
						a, _ := os.ReadFile(taskPath(g.pid(), tid, "stat"))
						b, _ := os.ReadFile(taskPath(g.pid(), tid, "syscall"))
						c, _ := os.ReadFile(taskPath(g.pid(), tid, "wchan"))
						d, _ := os.ReadFile(taskPath(g.pid(), tid, "status"))
						e, _ := os.ReadFile(taskPath(g.pid(), tid, "stack"))
						i := strings.Index(string(d), "SigQ")
						fmt.Printf("%s %s %s %s\n%s\n", a[:60], b, c, d[i:i+200], e)
					}
					m, _ := os.ReadFile(procPath(g.pid(), "maps"))
					fmt.Println(string(m))
					p, err := Open(g.pid())
					if err != nil {
						fmt.Println(err)
						return
					}
					stop(t, p, func(s *Stopped) error {
						for _, th := range s.Threads() {
							r, _ := th.Regs()
							fmt.Printf("%d %+v\n", th.TID, r)
						}
						return nil
					})
				}()
				_, _ = io.WriteString(g.stdin, "\n")
				text := g.finish()
				close(stopc)
				if !strings.HasSuffix(text, "\nok\n") || handledSignals(t, text) != sent {
					t.Errorf("sent %d: %s", sent, text)
				}
			}
		})
	}
}
