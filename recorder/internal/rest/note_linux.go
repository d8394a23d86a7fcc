package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/runtimedir"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// A note is two files in the folder that the user's recorders keep to themselves, named after the ring memory: one that says About, and a reel
// without events, whose functions have the numbers that the stubs write.
const (
	prefix    = "armed-"
	aboutName = ".json"
	reelName  = ".reel"
)

// mostFunctions is of how many functions a note is kept: they take some 50 bytes each of a file system in memory, as a rule.
const mostFunctions = 500_000

// Note is one that is being kept.
type Note struct {
	base string // path, without what is behind the names' common part
	w    *reel.Writer

	mu        sync.Mutex // guards what follows
	images    *tables.Images
	functions *tables.Fixed
	err       error // why nothing is noted any more
}

// paths are those of a note in a folder.
func baseOf(dir string, ringDev, ringInode uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%x-%x", prefix, ringDev, ringInode))
}

// Begin begins the note of a recording. h is the header of its dumps.
func Begin(a About, h reel.Header) (*Note, error) {
	dir, err := runtimedir.Own()
	if err != nil {
		return nil, err
	}
	removeStale(dir)
	a.Version = version
	n := &Note{base: baseOf(dir, a.RingDev, a.RingInode)}
	if n.w, err = reel.Create(n.base+reelName, h, reel.Options{Force: true, Mode: 0o600}); err != nil {
		return nil, err
	}
	n.images = tables.NewImages(tables.Own{To: n.w})
	n.functions = tables.NewFixed(n.images, n.w)
	b, err := json.Marshal(a)
	if err == nil {
		err = create(n.base+aboutName, b)
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// create writes a file that nobody else may read, in the place of one of a ring memory that has had the same number.
func create(path string, b []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Image notes an image.
func (n *Note) Image(im *mapped.Image) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil {
		n.err = n.images.Add(im)
	}
}

// Functions notes functions, whose target IDs follow those of all before and end before next.
func (n *Note) Functions(ranges []target.IDRange, next uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.err != nil:
	case next > mostFunctions:
		n.err = fmt.Errorf("%d functions are more than are noted", next-1)
	default:
		n.err = n.functions.Add(ranges, next)
	}
}

// Err is why the note isn't whole, nil if it is.
func (n *Note) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Close removes the note: the recorder has left the process.
func (n *Note) Close() {
	if n == nil {
		return
	}
	_ = n.w.Close() // it goes
	remove(n.base)
}

// remove removes what there is of a note. What can't be removed is found to be stale later.
func remove(base string) {
	_ = os.Remove(base + aboutName)
	_ = os.Remove(base + reelName)
}

// removeStale removes notes of processes that have ended.
func removeStale(dir string) {
	const most = 1000
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(most) // what is left is for the next time
	for _, name := range names {
		base, is := strings.CutSuffix(name, aboutName)
		if !is || !strings.HasPrefix(name, prefix) {
			continue
		}
		base = filepath.Join(dir, base)
		a, err := readAbout(base)
		if err != nil || a.PIDNamespace != process.OwnPIDNamespace() {
			continue
		}
		if start, err := process.StartTime(a.PID, a.PID); err != nil || start != a.Start {
			remove(base)
		}
	}
}

// readAbout reads what a note says.
func readAbout(base string) (About, error) {
	f, err := os.OpenFile(base+aboutName, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return About{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAbout))
	if err != nil {
		return About{}, err
	}
	return parseAbout(b)
}

// Found is a note of a recorder that has died.
type Found struct {
	About
	// File is a reel without events: the header, images and functions of the recording.
	File *reel.File
	base string
}

// Find finds the note of the recording with that ring memory, which a recorder of this user's must have signed. The error wraps
// fs.ErrNotExist where there is none: the recorder was not armed.
func Find(ringDev, ringInode uint64) (*Found, error) {
	dir, err := runtimedir.Own()
	if err != nil {
		return nil, err
	}
	n := &Found{base: baseOf(dir, ringDev, ringInode)}
	if n.About, err = readAbout(n.base); err != nil {
		return nil, err
	}
	if n.RingDev != ringDev || n.RingInode != ringInode {
		return nil, fmt.Errorf("%w: it is of another ring memory", errAbout)
	}
	if n.File, err = reel.Open(n.base + reelName); err != nil {
		return nil, fmt.Errorf("%w: %w", errAbout, err)
	}
	if clock := n.File.Header().Clock; clock.TicksPerSecond == 0 || clock.Mode != reel.ClockFull {
		return nil, errors.Join(fmt.Errorf("%w: its clock is %+v", errAbout, clock), n.Close())
	}
	return n, nil
}

// Close closes it, and leaves the note.
func (n *Found) Close() error { return n.File.Close() }

// Remove removes the note: the rings are gone.
func (n *Found) Remove() { remove(n.base) }
