package process

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPeersOfUnixSocketsAreFound(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var inodes [2]uint64
	for i, fd := range pair {
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		inodes[i] = st.Ino
	}
	peers, err := UnixPeers(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if peers[inodes[0]] != inodes[1] || peers[inodes[1]] != inodes[0] {
		t.Errorf("%v have the peers %d and %d", inodes, peers[inodes[0]], peers[inodes[1]])
	}
}

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

func FuzzUnixPeers(f *testing.F) {
	f.Add([]byte(strings.Repeat("\x20\x00\x00\x00\x14\x00", 6)))
	f.Add([]byte("\x28\x00\x00\x00\x14\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x02\x00\x09\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		peers := map[uint64]uint64{}
		_, _ = readUnixPeers(b, peers) // that it ends, and doesn't panic
		if len(peers) > len(b)/8 {
			t.Errorf("%d peers in %d bytes", len(peers), len(b))
		}
	})
}
