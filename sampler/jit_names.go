package sampler

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/callreel/callreel/process"
)

// jitNames names code that no file is behind by the map that the process's JIT compiler
// keeps of it, /tmp/perf-PID.map as the process sees it. It is in a folder that anybody
// may write to, so that nothing is believed but what the process's own user or root has
// written.
type jitNames struct {
	p      *process.Process
	file   *os.File
	opened os.FileInfo
	read   int64
	names  jitMap
	next   time.Time // when to look for more
	err    error     // why there are no names, or not all; nil where there is no file
}

var (
	errJITFile  = errors.New("not a regular file of one name")
	errJITOwner = errors.New("owned by another user than the process's")
	errJITOpen  = errors.New("anybody may write to it")
	errJITOld   = errors.New("older than the process")
	errJITSize  = errors.New("too large; the rest is not read")
)

// find returns the name of the code at an address, "" when there is none.
func (j *jitNames) find(addr uint64) string {
	if j == nil || j.p == nil {
		return ""
	}
	if now := time.Now(); !now.Before(j.next) {
		j.refresh()
		// A process that compiles all the time must not keep us reading all the time.
		const share = 20
		j.next = now.Add(max(time.Second, share*time.Since(now)))
	}
	return j.names.find(addr)
}

func (j *jitNames) close() {
	if j != nil && j.file != nil {
		_ = j.file.Close() // only read from
		j.file = nil
	}
}

// problem says why names are missing, nil when nothing is wrong.
func (j *jitNames) problem() error {
	if j == nil {
		return nil
	}
	return j.err
}

// refresh reads what was written since the last time.
func (j *jitNames) refresh() {
	status, err := j.p.Status()
	if err != nil {
		return // it has ended, and what was read has to do
	}
	inner := j.p.Pid()
	if n := len(status.NSPIDs); n > 0 {
		inner = status.NSPIDs[n-1]
	}
	name := fmt.Sprintf("tmp/perf-%d.map", inner)
	file, err := openBelowRoot(j.p.Pid(), name)
	if err != nil {
		return // there is none, as mostly
	}
	info, err := file.Stat()
	if err == nil {
		err = trustJITMap(info, status.UIDs[1], startedAt(j.p.StartTime()))
	}
	if err != nil {
		_ = file.Close() // nothing was read
		j.err = fmt.Errorf("/%s: %w", name, err)
		return
	}
	if j.file == nil || !os.SameFile(info, j.opened) || info.Size() < j.read {
		j.close()
		j.names, j.read = jitMap{}, 0
	} else {
		_ = file.Close() // the same is open
		file = j.file
	}
	j.file, j.opened, j.err = file, info, nil
	if info.Size() > maxJITMap {
		j.err = fmt.Errorf("/%s: %d bytes, want at most %d: %w", name, info.Size(), maxJITMap, errJITSize)
	}
	if n := min(info.Size(), maxJITMap) - j.read; n > 0 {
		text, err := io.ReadAll(io.NewSectionReader(file, j.read, n))
		j.read += int64(len(text))
		j.names.add(text)
		if err != nil {
			j.err = fmt.Errorf("/%s: %w", name, err)
		}
	}
}
