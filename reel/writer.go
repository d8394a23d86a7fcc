package reel

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/internal/outfile"
)

// Options say how [Create] makes the file.
type Options struct {
	// Force replaces a file that exists. Without it Create fails with an error
	// that wraps fs.ErrExist. The file's name is what is taken: what has the old
	// one open keeps it, and a symbolic link is replaced, not followed.
	Force bool

	// Mode is the file's, exactly, whatever the umask is. 0 is 0600: reels hold
	// arguments, which may be secrets.
	Mode fs.FileMode
}

// WriterStats says how much a Writer has taken and written.
type WriterStats struct {
	Bytes  int64  // in the file
	Events uint64 // appended, those not yet in the file included
}

// Writer writes a reel. Its methods, and those of its ThreadWriters, may be
// called from several goroutines at once.
//
// After an error from the file (a full disk, for example) the Writer takes
// nothing more and returns that error from every method; what was written
// before stays readable.
type Writer struct {
	name string
	mode ClockMode

	markShift  uint // see markQuantum
	goroutines bool // marks are of them

	appended atomic.Uint64 // events

	// poolMu guards idle and raw. idle are encoders that no thread holds an open chunk in.
	poolMu   sync.Mutex
	idle     []*encoder
	raw      [][]Event    // rooms for maxRaw events each
	encoders atomic.Int64 // that threads hold

	// tableMu orders what is given numbers; it is taken before mu.
	tableMu   sync.Mutex
	images    ImageID
	functions uint32
	keys      uint32 // threads so far
	markers   uint32
	threads   []*ThreadWriter // but for those that have ended and have nothing to be written
	dumped    bool

	flushing sync.Mutex // held by Flush; it is taken before all others

	schedMu sync.Mutex // guards sched; it is taken before mu
	sched   schedBuffer

	// mu guards the file.
	mu     sync.Mutex
	file   Output
	offset int64
	index  indexBlocks
	// unindexed says that there are too many chunks for an index.
	unindexed   bool
	mostIndexed int

	err    error
	closed bool
}

// Output is what a Writer needs of the file it writes.
type Output interface {
	io.WriteCloser
	Truncate(size int64) error
}

var errClosed = errors.New("the reel is closed")

// Create makes the file and writes the header, so that a valid reel exists from
// this moment on. The caller must Close the Writer.
func Create(path string, h Header, opt Options) (*Writer, error) {
	f, err := outfile.Create(path, outfile.Options{Force: opt.Force, Mode: opt.Mode})
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("reel: %w; choose another name, or overwrite it with --force", err)
		}
		return nil, fmt.Errorf("reel: %w", err)
	}
	w, err := NewWriter(path, f, h)
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return w, nil
}

// NewWriter writes the header of a reel into an output, which is the Writer's from
// then on: Close closes it, as an error of NewWriter does. name is what errors call it.
func NewWriter(name string, f Output, h Header) (*Writer, error) {
	w := &Writer{name: name, mode: h.Clock.Mode, file: f, mostIndexed: mostIndexed}
	w.sched.shift, w.markShift, w.goroutines = schedQuantum(h.Clock.TicksPerSecond), markQuantum(h.Clock.TicksPerSecond), h.Goroutines
	err := w.put(frame{kind: KindHeader, mode: w.mode, count: 1}, appendHeader(make([]byte, frameSize), &h))
	if err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

// AddImage adds an image and returns its ID.
func (w *Writer) AddImage(m Image) (ImageID, error) {
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	id := w.images + 1
	b := appendUvarint(make([]byte, frameSize), uint64(id))
	if err := w.put(frame{kind: KindImages, count: 1}, appendImage(b, &m)); err != nil {
		return 0, err
	}
	w.images = id
	return id, nil
}

// AddFunctions adds functions to the table and returns the ID of the first; the
// others follow it one by one. It may be called again while events are being
// appended, but before the first event that uses the new IDs.
func (w *Writer) AddFunctions(functions []Function) (firstID uint32, err error) {
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	firstID = w.functions + 1
	if uint64(w.functions)+uint64(len(functions)) > MaxID {
		return 0, fmt.Errorf("reel: %s: more than %d functions", w.name, MaxID)
	}
	for len(functions) > 0 {
		b := appendUvarint(make([]byte, frameSize, frameSize+1<<16), uint64(w.functions+1))
		n := 0
		for n < len(functions) && len(b) < metaBytes {
			b = appendFunction(b, &functions[n])
			n++
		}
		if err := w.put(frame{kind: KindFunctions, count: uint32(n)}, b); err != nil {
			return 0, err
		}
		w.functions += uint32(n)
		functions = functions[n:]
	}
	return firstID, nil
}

// ClockPair records one instant on both clocks. Two or more make the conversion
// of ticks exact between them; one when recording starts and one when it ends
// are worth having, and one every few seconds between.
func (w *Writer) ClockPair(tick uint64, unixNS int64) error {
	b := appendClockPair(make([]byte, frameSize, frameSize+20), ClockPair{tick, unixNS})
	return w.put(frame{kind: KindClock, count: 1, first: tick, last: tick}, b)
}

// Thread adds a thread. The same TID may be added again: it is another thread
// then, with a key of its own.
func (w *Writer) Thread(t Thread) (*ThreadWriter, error) {
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	if w.keys == math.MaxUint32 {
		return nil, fmt.Errorf("reel: %s: more than %d threads", w.name, uint32(math.MaxUint32))
	}
	t.Key = w.keys + 1
	tw := &ThreadWriter{w: w, thread: t, listed: true}
	if err := tw.describe(); err != nil {
		return nil, err
	}
	w.keys++
	w.threads = append(w.threads, tw)
	return tw, nil
}

// Timeline adds what a reader of the reel finds by [File.Timeline]: derived from the chunks before it, for readers that
// know it. It comes last. The parts are written one after the other.
func (w *Writer) Timeline(parts ...[]byte) error {
	size := 0
	f := frame{kind: KindTimeline, count: 1}
	for _, p := range parts {
		size += len(p)
		f.sum = crc32.Update(f.sum, castagnoli, p)
	}
	if size > MaxTimeline {
		return fmt.Errorf("reel: %s: a timeline of %d bytes is too large; it is made anew by readers", w.name, size)
	}
	f.length = uint32(size)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	head := make([]byte, frameSize)
	f.write(head)
	out := bufio.NewWriterSize(w.file, 1<<20)
	for _, p := range append([][]byte{head}, parts...) {
		_, _ = out.Write(p) // Flush tells of errors
	}
	return w.wrote(f, frameSize+size, out.Flush())
}

// MaxTimeline is the most bytes that a timeline may have.
const MaxTimeline = 1 << 30

// Flush writes everything appended so far to the file, so that it survives the
// end of this process, however sudden. It does not wait for the disk. States of
// threads may wait for more of them, up to two seconds.
func (w *Writer) Flush() error {
	w.flushing.Lock()
	defer w.flushing.Unlock()
	w.tableMu.Lock()
	threads := slices.Clone(w.threads)
	w.tableMu.Unlock()
	over := map[*ThreadWriter]bool{}
	for _, tw := range threads {
		ended, err := tw.flush()
		if err != nil {
			return err
		}
		if ended {
			over[tw] = true
		}
	}
	if err := w.flushSched(false); err != nil {
		return err
	}
	if len(over) > 0 {
		w.tableMu.Lock()
		defer w.tableMu.Unlock()
		w.threads = slices.DeleteFunc(w.threads, func(tw *ThreadWriter) bool {
			was := over[tw]
			delete(over, tw) // it may have been listed again since, behind this place
			return was
		})
	}
	return nil
}

// list lists a thread again that had ended.
func (w *Writer) list(tw *ThreadWriter) {
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	w.threads = append(w.threads, tw)
}

// mostIndexed bounds the memory that the index takes, at 56 bytes for a chunk. A reel with more chunks has no index, and is read by scanning.
const mostIndexed = 1 << 20

// Stats returns the counts up to now.
func (w *Writer) Stats() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WriterStats{Bytes: w.offset, Events: w.appended.Load()}
}

// Close flushes, writes the index and closes the file. After an error the index
// is left out; the reel is then read by scanning it.
func (w *Writer) Close() error {
	flushErr := w.Flush()
	if flushErr == nil {
		flushErr = w.flushSched(true)
	}
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	if flushErr == nil && !w.unindexed {
		b := make([]byte, frameSize, frameSize+indexEntrySize*w.index.count+trailerSize)
		for _, entries := range w.index.blocks {
			b = appendIndexEntries(b, entries)
		}
		flushErr = w.putLocked(frame{kind: KindIndex, count: uint32(w.index.count)}, appendTrailer(b, w.offset))
	}
	w.closed = true
	w.err = fmt.Errorf("reel: %s: %w", w.name, errClosed)
	if err := w.file.Close(); err != nil && flushErr == nil {
		flushErr = fmt.Errorf("reel: %w", err)
	}
	return flushErr
}

// Open opens the reel for reading, as far as it has come, with all states of threads; after an error from the file,
// or Close, as far as it was written. It is the file that the Writer has made, or none: another by the same name isn't
// opened.
func (w *Writer) Open() (*File, error) {
	if w.failed() == nil {
		if err := w.flushSched(true); err != nil { // what is derived from the file counts on its end
			return nil, err
		}
	}
	made, ok := w.file.(*outfile.File)
	if !ok {
		return nil, fmt.Errorf("reel: %s: %w", w.name, errors.ErrUnsupported)
	}
	w.poolMu.Lock()
	w.idle = nil // it is the end, mostly, and what is read takes memory too
	w.poolMu.Unlock()
	f, err := made.Reopen()
	if err != nil {
		return nil, fmt.Errorf("reel: %w", err)
	}
	r, err := openFile(w.name, f)
	return r, errors.Join(err, f.Close())
}

// failed returns why the Writer takes nothing more.
func (w *Writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Abandon closes the Writer and removes the file that Create has made, unless another
// has its name by now. Whoever was to write another reel may do so then.
func (w *Writer) Abandon() error {
	w.mu.Lock()
	closed := w.closed
	w.closed, w.err = true, fmt.Errorf("reel: %s: %w", w.name, errClosed)
	w.mu.Unlock()
	var err error
	if !closed {
		err = w.file.Close()
	}
	if made, ok := w.file.(*outfile.File); ok {
		err = errors.Join(err, made.Remove())
	}
	if err != nil {
		return fmt.Errorf("reel: %w", err)
	}
	return nil
}

// put writes a chunk: b is frameSize bytes of room for the frame and then the
// payload.
func (w *Writer) put(f frame, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.putLocked(f, b)
}

func (w *Writer) putLocked(f frame, b []byte) error {
	if w.err != nil {
		return w.err
	}
	f.put(b, b[frameSize:])
	_, err := w.file.Write(b)
	return w.wrote(f, len(b), err)
}

// putPayload is put of a payload that is elsewhere, and mustn't be copied for the room before it.
func (w *Writer) putPayload(f frame, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	var head [frameSize]byte
	f.put(head[:], payload)
	_, err := w.file.Write(head[:])
	if err == nil {
		_, err = w.file.Write(payload)
	}
	return w.wrote(f, frameSize+len(payload), err)
}

// wrote takes in how it went to write a chunk of so many bytes.
func (w *Writer) wrote(f frame, size int, err error) error {
	if err != nil {
		// Half a chunk is of no use to a reader, and what it takes may be just
		// the room that is missing. If it cannot be cut off, readers skip it.
		cut := w.file.Truncate(w.offset)
		w.err = fmt.Errorf("reel: writing %d bytes (%v) at offset %d: %w; what was written before can be read", size, f.kind, w.offset, err)
		if cut != nil {
			w.err = fmt.Errorf("%w (cutting off the incomplete chunk: %v)", w.err, cut)
		}
		return w.err
	}
	if w.unindexed = w.unindexed || w.index.count >= w.mostIndexed; w.unindexed {
		w.index = indexBlocks{}
	} else {
		w.index.add(indexEntry{frame: f, offset: w.offset})
	}
	w.offset += int64(size)
	return nil
}

// takeEncoder returns an encoder ready for a new chunk.
func (w *Writer) takeEncoder() *encoder {
	w.encoders.Add(1)
	w.poolMu.Lock()
	var e *encoder
	if n := len(w.idle); n > 0 {
		e = w.idle[n-1]
		w.idle = w.idle[:n-1]
	}
	w.poolMu.Unlock()
	if e == nil {
		e = new(encoder)
	}
	e.reset()
	return e
}

// takeRaw returns room for events that have no encoder yet.
func (w *Writer) takeRaw() []Event {
	w.poolMu.Lock()
	defer w.poolMu.Unlock()
	n := len(w.raw)
	if n == 0 {
		return make([]Event, 0, maxRaw)
	}
	buf := w.raw[n-1]
	w.raw = w.raw[:n-1]
	return buf
}

func (w *Writer) returnRaw(buf []Event) {
	w.poolMu.Lock()
	if cap(buf) == maxRaw && len(w.raw) < maxRawBuffers {
		w.raw = append(w.raw, buf[:0])
	}
	w.poolMu.Unlock()
}

func (w *Writer) returnEncoder(e *encoder) {
	w.encoders.Add(-1)
	w.poolMu.Lock()
	if len(w.idle) < maxEncoders {
		w.idle = append(w.idle, e)
	}
	w.poolMu.Unlock()
}
