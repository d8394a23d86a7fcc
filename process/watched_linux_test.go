package process

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhatEpollWatchesIsFound(t *testing.T) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ep)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, p[0], &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		t.Fatal(err)
	}
	if got := Watched(os.Getpid(), ep); len(got) != 1 || got[0] != p[0] {
		t.Errorf("%v, not %d", got, p[0])
	}
	if got := Watched(os.Getpid(), p[0]); got != nil {
		t.Errorf("a pipe watches %v", got)
	}
}

func FuzzWatched(f *testing.F) {
	f.Add("pos:\t0\nflags:\t02\ntfd:       12 events:       19 data:                5  pos:0 ino:1 sdev:f\ntfd:       1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range parseWatched(text) {
			if n < 0 {
				t.Error(n)
			}
		}
	})
}
