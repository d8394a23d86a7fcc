package recovery

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/runtimedir"
)

// KeySize is the size of the key in bytes.
const KeySize = 32

// keyName is the file of the key in the user's runtime folder.
const keyName = "key"

// Key returns the key that this user's recorders sign their recovery memory with. It is made if there is none, and is good for as
// long as the machine runs.
func Key() ([]byte, error) {
	dir, err := runtimedir.Open()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for range 3 { // another may make it, or be at it
		key, err := ReadKey(dir)
		if !errors.Is(err, os.ErrNotExist) {
			return key, err
		}
		if err := makeKey(dir); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	return ReadKey(dir)
}

// ReadKey reads the key in that folder.
func ReadKey(dir *os.File) ([]byte, error) {
	fd, err := unix.Openat(int(dir.Fd()), keyName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("callreel: %s/%s: %w", dir.Name(), keyName, err)
	}
	f := os.NewFile(uintptr(fd), keyName)
	defer f.Close()
	key := make([]byte, KeySize)
	if _, err := io.ReadFull(f, key); err != nil {
		return nil, fmt.Errorf("callreel: %s/%s: %w: remove it", dir.Name(), keyName, err)
	}
	return key, nil
}

// makeKey makes the file under another name first: nobody reads half of it.
func makeKey(dir *os.File) error {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // it never fails (crypto/rand)
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("callreel: %s: %w", dir.Name(), err)
	}
	f := os.NewFile(uintptr(fd), keyName)
	defer f.Close()
	if _, err := f.Write(key); err != nil {
		return fmt.Errorf("callreel: %s/%s: %w", dir.Name(), keyName, err)
	}
	from := fmt.Sprintf("/proc/self/fd/%d", fd)
	if err := unix.Linkat(unix.AT_FDCWD, from, int(dir.Fd()), keyName, unix.AT_SYMLINK_FOLLOW); err != nil {
		return fmt.Errorf("callreel: %s/%s: %w", dir.Name(), keyName, err)
	}
	return nil
}
