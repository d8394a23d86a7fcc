package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// limitListener accepts no more than n connections at once; more wait in the system's queue. When it is full, connections that wait
// for another request of their client make room.
func limitListener(l net.Listener, n int) *limitedListener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{}), idle: map[net.Conn]time.Time{}}
}

type limitedListener struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	idle map[net.Conn]time.Time // since when
}

// shortIdle is how long a connection may be idle whatever else waits. A client may be sending its next request just when the
// connection is closed, which is the less likely the longer it was idle.
const shortIdle = 2 * time.Second

// lookAgain is how often a full listener looks for connections that are idle.
const lookAgain = 100 * time.Millisecond

// state follows the connections, see http.Server.ConnState.
func (l *limitedListener) state(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == http.StateIdle {
		l.idle[c] = time.Now()
	} else {
		delete(l.idle, c)
	}
}

// slot waits until there is room.
func (l *limitedListener) slot() error {
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
		}
		l.closeIdle()
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-l.closed:
			return net.ErrClosed
		case <-time.After(lookAgain):
		}
	}
}

// closeIdle closes the connection that has been idle for longest.
func (l *limitedListener) closeIdle() {
	l.mu.Lock()
	var longest net.Conn
	for c, since := range l.idle {
		if longest == nil || since.Before(l.idle[longest]) {
			longest = c
		}
	}
	if longest == nil || time.Since(l.idle[longest]) < shortIdle {
		l.mu.Unlock()
		return
	}
	delete(l.idle, longest)
	l.mu.Unlock()
	_ = longest.Close() // its client has nothing to lose
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	if err := l.slot(); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return &limitedConn{Conn: c, release: l.release()}, nil
	}
	return &limitedTCP{tcp, l.release()}, nil
}

// release gives a slot back, once.
func (l *limitedListener) release() func() { return sync.OnceFunc(func() { <-l.slots }) }

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// limitedTCP keeps what lets the system send files.
type limitedTCP struct {
	*net.TCPConn
	release func()
}

// Close implements net.Conn.
func (c *limitedTCP) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}
