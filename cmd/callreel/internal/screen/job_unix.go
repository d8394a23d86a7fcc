//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

func notify(resized, stops chan<- os.Signal) {
	signal.Notify(resized, syscall.SIGWINCH)
	signal.Notify(stops, syscall.SIGTSTP)
}

// stopJob stops the job, as SIGTSTP does unless it is asked for. The kernel does so only where there is a shell that could let it go on.
func stopJob(stops chan os.Signal) {
	const soon = 100 * time.Millisecond // within which the signal comes
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	byDefault(syscall.SIGTSTP, func() {
		_ = syscall.Kill(0, syscall.SIGTSTP) // to ourselves, too: it can't fail
		select {
		case <-resumed:
		case <-time.After(soon):
		}
	})
	select {
	case <-stops: // one that came before
	default:
	}
}
