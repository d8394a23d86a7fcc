package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// spool keeps events of many lanes in a temporary file until they can be written
// lane by lane. Its memory does not grow with their number: of each lane only the
// newest are held, and all of these together take at most spoolBuffered bytes.
type spool struct {
	dir      string
	file     *os.File
	named    bool  // the file still has a name
	end      int64 // of the file
	buffered int
	some     []*spoolLane // that may hold something
}

// spoolLane is the events of one lane: a chain of blocks in the file, each of which
// begins with the offset of the next and its own length, and what is held.
type spoolLane struct {
	first, last int64 // offsets plus one; 0 is none
	buffered    []byte
	listed      bool // in spool.some
}

const (
	spoolBuffered = 16 << 20
	spoolBlock    = 64 << 10 // of a lane that is written by itself
	spoolHead     = 12
)

// add adds an event, of two numbers.
func (s *spool) add(l *spoolLane, a, b uint64) error {
	if !l.listed {
		s.some, l.listed = append(s.some, l), true
	}
	n := len(l.buffered)
	l.buffered = binary.AppendUvarint(binary.AppendUvarint(l.buffered, a), b)
	s.buffered += len(l.buffered) - n
	if len(l.buffered) >= spoolBlock {
		return s.flush(l)
	}
	if s.buffered >= spoolBuffered {
		return s.flushAll()
	}
	return nil
}

func (s *spool) flushAll() error {
	for _, l := range s.some {
		if err := s.flush(l); err != nil {
			return err
		}
		l.listed = false
	}
	s.some = s.some[:0]
	return nil
}

// flush writes what a lane holds.
func (s *spool) flush(l *spoolLane) error {
	if len(l.buffered) == 0 {
		return nil
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	head := make([]byte, spoolHead, spoolHead+len(l.buffered))
	binary.LittleEndian.PutUint32(head[8:], uint32(len(l.buffered)))
	_, err := s.file.WriteAt(append(head, l.buffered...), s.end)
	if err == nil && l.last != 0 {
		binary.LittleEndian.PutUint64(head, uint64(s.end+1))
		_, err = s.file.WriteAt(head[:8], l.last-1)
	}
	if err != nil {
		return fmt.Errorf("temporary file (TMPDIR chooses where): %w", err)
	}
	l.last = s.end + 1
	if l.first == 0 {
		l.first = l.last
	}
	s.end += int64(spoolHead + len(l.buffered))
	s.buffered -= len(l.buffered)
	l.buffered = nil // kept, it would be memory of each lane that there ever was
	return nil
}

func (s *spool) open() error {
	f, err := os.CreateTemp(s.dir, "callreel-export-*")
	if err != nil {
		return fmt.Errorf("temporary file (TMPDIR chooses where): %w", err)
	}
	s.file = f
	s.named = os.Remove(f.Name()) != nil // where that can be done, nothing is left however this ends
	return nil
}

// read passes on the events of a lane in order, until yield returns false.
func (s *spool) read(l *spoolLane, yield func(a, b uint64) bool) error {
	var block []byte
	for at := l.first; at != 0; {
		var head [spoolHead]byte
		if _, err := s.file.ReadAt(head[:], at-1); err != nil {
			return fmt.Errorf("temporary file: %w", err)
		}
		n := int(binary.LittleEndian.Uint32(head[8:]))
		if cap(block) < n {
			block = make([]byte, n)
		}
		block = block[:n]
		if _, err := s.file.ReadAt(block, at-1+spoolHead); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("temporary file: %w", err)
		}
		if !spoolEvents(block, yield) {
			return nil
		}
		at = int64(binary.LittleEndian.Uint64(head[:]))
	}
	spoolEvents(l.buffered, yield)
	return nil
}

// drop forgets a lane that isn't read any more.
func (s *spool) drop(l *spoolLane) {
	s.buffered -= len(l.buffered)
	l.buffered = nil
	for i := len(s.some) - 1; l.listed && i >= 0; i-- {
		if s.some[i] == l {
			s.some, l.listed = slices.Delete(s.some, i, i+1), false
		}
	}
}

func spoolEvents(block []byte, yield func(a, b uint64) bool) bool {
	for len(block) > 0 {
		a, n := binary.Uvarint(block)
		b, m := binary.Uvarint(block[max(n, 0):])
		if n <= 0 || m <= 0 || !yield(a, b) {
			return false
		}
		block = block[n+m:]
	}
	return true
}

// close removes the file.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}
