package process

import (
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSocketsOfAProcessAreFound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	link, err := FileOf(os.Getpid(), int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	found := Sockets(os.Getpid(), map[uint64]bool{inode: true, 1: true})
	s := found[inode]
	if want := "socket " + c.LocalAddr().String() + " -> " + l.Addr().String(); len(found) != 1 || s.String() != want {
		t.Errorf("%v, want %s", found, want)
	}
}

func TestCallsThatWaitForDescriptorsAreKnown(t *testing.T) {
	var missing []string
	for name := range descriptorCalls {
		known := false
		for _, n := range syscallNames {
			known = known || n == name
		}
		if !known {
			missing = append(missing, name)
		}
	}
	var want []string
	if runtime.GOARCH == "arm64" {
		want = []string{"epoll_wait"} // there is epoll_pwait only (include/uapi/asm-generic/unistd.h)
	}
	if !slices.Equal(missing, want) {
		t.Errorf("%v have no number, want %v", missing, want)
	}
	for number, name := range syscallNames {
		if WaitsForDescriptor(number) != descriptorCalls[name] {
			t.Errorf("%s: %v", name, WaitsForDescriptor(number))
		}
	}
	if WaitsForDescriptor(1 << 40) {
		t.Error("no system call waits for a descriptor")
	}
}
