package realtest

import (
	"net"
	"sync/atomic"
	"testing"
)

// SilentServer takes connections and says nothing until the end of the test. taken counts them.
func SilentServer(t testing.TB) (address string, taken *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	t.Cleanup(func() { listener.Close() })
	taken = new(atomic.Int32)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			defer conn.Close()
		}
	}()
	return listener.Addr().String(), taken
}
