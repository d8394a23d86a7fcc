package crash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/callreel/callreel/sampler/corefile"
)

// maxText bounds reports that are text, in bytes.
const maxText = 64 << 20

// Open opens a crash report of any format that this package reads. It must be closed. The error
// wraps [ErrUnknownFormat] for other files.
func Open(path string) (*Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		if err == nil {
			err = fmt.Errorf("%s is not a regular file", path)
		}
		return nil, errors.Join(fmt.Errorf("crash: %w", err), file.Close())
	}
	var magic [4]byte
	if _, err := file.ReadAt(magic[:], 0); err == nil && string(magic[:]) == "\x7fELF" { // which has a reader of its own
		r, err := readELFCore(func() (*corefile.File, error) { return corefile.Open(path) })
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		r.closers = append(r.closers, file)
		return r, nil
	}
	r, err := read(path, file, info.Size())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r.closers = append(r.closers, file)
	return r, nil
}

// Read is Open for a report that can be read at any place, which it must be as long as the report
// is open. The name is for messages.
func Read(name string, r io.ReaderAt, size int64) (*Report, error) { return read(name, r, size) }

func read(name string, r io.ReaderAt, size int64) (*Report, error) {
	start := make([]byte, min(size, 4096))
	if n, err := r.ReadAt(start, 0); n < len(start) {
		return nil, fmt.Errorf("crash: %s: %w", name, err)
	}
	switch {
	case isMinidump(start):
		return readMinidump(name, r, size)
	case isMachOCore(start):
		return readMachOCore(name, r, size)
	case strings.HasPrefix(string(start), "\x7fELF"):
		whole, err := readText(name, r, size)
		if err != nil {
			return nil, err
		}
		return readELFCore(func() (*corefile.File, error) { return corefile.Parse(name, []byte(whole)) })
	}
	if len(start) > 0 && size <= maxText && (start[0] == 0x08 || start[0] == 0x12) {
		whole, err := readText(name, r, size)
		if err != nil {
			return nil, err
		}
		if isTombstoneProto([]byte(whole)) {
			return readTombstoneProto(name, []byte(whole))
		}
	}
	text := strings.TrimLeft(string(start), "\ufeff \t\r\n")
	switch {
	case strings.HasPrefix(text, "{"):
		return readJSON(name, r, size)
	case isTombstone(text):
		return readTombstone(name, r, size)
	case isAppleText(text):
		whole, err := readText(name, r, size)
		if err != nil {
			return nil, err
		}
		return readAppleText(name, whole)
	case strings.IndexByte(text, 0) < 0:
		return readOtherText(name, r, size)
	}
	return nil, fmt.Errorf("crash: %s: %w", name, ErrUnknownFormat)
}

// readJSON tells the formats that are JSON from each other.
func readJSON(name string, r io.ReaderAt, size int64) (*Report, error) {
	text, err := readText(name, r, size)
	if err != nil {
		return nil, err
	}
	switch {
	case isIPS(text):
		return readIPS(name, text)
	case isKSCrash(text):
		return readKSCrash(name, text)
	}
	return nil, fmt.Errorf("crash: %s: %w: JSON that is neither Apple's nor KSCrash's", name, ErrUnknownFormat)
}

// readOtherText tells logs that hold stacks from other text. The stacks may stand far behind the
// beginning.
func readOtherText(name string, r io.ReaderAt, size int64) (*Report, error) {
	text, err := readText(name, r, size)
	if err != nil {
		return nil, err
	}
	switch {
	case isGoPanic(text):
		return readGoPanic(name, text)
	case isCoredumpText(text):
		return readCoredumpText(name, text)
	case isTombstone(text):
		return readTombstone(name, strings.NewReader(text), int64(len(text)))
	case isAppleText(text):
		return readAppleText(name, text)
	}
	return nil, fmt.Errorf("crash: %s: %w; callreel symbolize names addresses in any text", name, ErrUnknownFormat)
}
