package process

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
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
	if errors.Is(err, unix.ENOENT) { // there is no module unix_diag
		realtest.NeedThat(t, "sock_diag of Unix sockets", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if peers[inodes[0]] != inodes[1] || peers[inodes[1]] != inodes[0] {
		t.Errorf("%v have the peers %d and %d", inodes, peers[inodes[0]], peers[inodes[1]])
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
