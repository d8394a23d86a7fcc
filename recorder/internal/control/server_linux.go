package control

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Server waits for requests to the recorder of a process.
type Server struct {
	listener *net.UnixListener
	place    *place
	serving  sync.WaitGroup
}

// Listen makes the socket of a process's recorder. Requests wait until Serve is called. The error wraps target.ErrRecorded if another
// recorder has it.
func Listen(pid int) (*Server, error) {
	l, at, err := listenAt(pid)
	if err != nil {
		return nil, err
	}
	return &Server{listener: l, place: at}, nil
}

// Serve begins to answer requests by answer, one after the other, on a goroutine of its own: each may stop the recording for a moment.
// A request is a line of at most MaxLine bytes that anybody may have written who may ask; an answer is one line without its end.
func (s *Server) Serve(answer func(request []byte) []byte) {
	s.serving.Go(func() {
		for {
			conn, err := s.listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(10 * time.Millisecond) // out of descriptors
				continue
			}
			serveOne(conn, answer)
			_ = conn.Close()
		}
	})
}

func serveOne(conn *net.UnixConn, answer func([]byte) []byte) {
	if err := mayAsk(conn); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(lineTimeout))
	request, err := readLine(conn)
	if err != nil {
		return
	}
	line := append(answer(request), '\n')
	_ = conn.SetDeadline(time.Now().Add(lineTimeout))
	_, _ = conn.Write(line)
}

// Close removes the socket, and waits until the request that is being served has its answer. A nil Server serves nobody.
func (s *Server) Close() {
	if s != nil {
		s.place.leave()
		_ = s.listener.Close()
		s.serving.Wait()
	}
}
