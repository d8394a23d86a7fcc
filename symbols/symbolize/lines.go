package symbolize

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds what is looked at as one line, in bytes. A longer one is no frame; it goes
// through in pieces.
const maxLine = 64 << 10

// eachLine hands every line of r to whole, with its end ("\n", "\r\n" or none), and pieces of lines that are
// too long to part. Whenever nothing more has come yet, it calls pause.
func eachLine(r io.Reader, whole func(text, end string) error, part func(piece []byte) error, pause func() error) error {
	in := bufio.NewReaderSize(r, maxLine)
	inside := false // a line that goes through in pieces
	for {
		raw, err := in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full && !errors.Is(err, io.EOF) {
			return err
		}
		var taken error
		switch {
		case full || inside:
			taken = part(raw)
		case len(raw) > 0:
			text := bytes.TrimSuffix(raw, []byte("\n"))
			text = bytes.TrimSuffix(text, []byte("\r"))
			taken = whole(string(text), string(raw[len(text):]))
		}
		if taken != nil {
			return taken
		}
		inside = full
		if err != nil && !full {
			return nil
		}
		if in.Buffered() == 0 {
			if err := pause(); err != nil {
				return err
			}
		}
	}
}
