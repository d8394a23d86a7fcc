package viewer

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// Calls of a signal handler that interrupted a stub come behind the stub's event with earlier times. The report and all
// answers must make the same of it, also where a goroutine goes to another thread in between.
func TestTimesOutOfOrderAreAnsweredAsReported(t *testing.T) {
	for _, goroutines := range []bool{false, true} {
		t.Run(fmt.Sprintf("goroutines %v", goroutines), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "order.reel")
			h := reel.Header{PID: 77, Exe: "/bin/prog", Clock: madereel.Nanoseconds(1000), Goroutines: goroutines}
			w := madereel.Create(t, path, h, reel.Image{Path: "/bin/prog"}, "main.f", "main.g", "main.h")
			for tid := range 2 {
				var events []reel.Event
				at := uint64(2000 + 300*tid)
				for i := range 200 {
					if goroutines {
						events = append(events, reel.Switch(at, uint64(1+(i+tid)%3)))
					}
					const sp = 1 << 20
					late := uint64(i%5) * 100
					events = append(events,
						reel.Entry(at+10, sp, 1), reel.Entry(at+20+late, sp-64, 2), reel.Entry(at+25, sp-512, 3), reel.Exit(at+35, sp-512, 3),
						reel.Exit(at+110+late, sp-64, 2), reel.Entry(at+90, sp-64, 3), reel.Exit(at+95, sp-64, 3), reel.Exit(at+150, sp, 1))
					at += 600
				}
				madereel.Thread(t, w, reel.Thread{TID: 78 + tid, Process: 77, Name: "worker"}, events...)
			}
			realtest.Must(t, w.Close())
			checkAgainstReport(t, path)
		})
	}
}
