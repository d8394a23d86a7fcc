package control

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"
)

const (
	answerTimeout = time.Minute // for a dump of large rings to a slow disk
	// MaxLine is the most bytes of a request or an answer.
	MaxLine = 1 << 16
)

// Ask sends a request to the recorder of a process and returns its answer, with the end of the line. The error wraps ErrNobody where none
// listens.
func Ask(ctx context.Context, pid int, request []byte) ([]byte, error) {
	conn, err := dial(ctx, pid)
	if err != nil {
		return nil, fmt.Errorf("callreel: process %d: %w", pid, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	if _, err := conn.Write(append(request, '\n')); err != nil {
		return nil, fmt.Errorf("callreel: process %d: asking its recorder: %w", pid, err)
	}
	line, err := readLine(conn)
	if err != nil {
		return nil, fmt.Errorf("callreel: process %d: its recorder gives no answer: %w", pid, err)
	}
	return line, nil
}

// readLine reads one line of bounded length.
func readLine(r io.Reader) ([]byte, error) {
	return bufio.NewReaderSize(io.LimitReader(r, MaxLine), MaxLine).ReadBytes('\n')
}
