package sampler

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/callreel/callreel/process"
)

// jitNames names code that no file is behind by what the process's JIT compiler writes
// down of it: a map, /tmp/perf-PID.map as the process sees it, or a jitdump file, which it
// maps for that one can find it. They are in folders that anybody may write to, so that
// nothing is believed but what the process's own user or root has written.
type jitNames struct {
	p    *process.Process
	next time.Time // when to look for more
	list jitFile
	text jitMap
	dump jitFile
	code jitDump
	// version changes when names come: code may have been made where other code was.
	version int
}

// jitFile is a file that grows while it is read.
type jitFile struct {
	file   *os.File
	opened os.FileInfo
	read   int64
	err    error // why there are no names, or not all; nil where there is no file
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
	j.update()
	return j.known(addr)
}

// update reads what was written since, if the last time was some time ago.
func (j *jitNames) update() {
	if j == nil || j.p == nil {
		return
	}
	if now := time.Now(); !now.Before(j.next) {
		j.refresh()
		// A process that compiles all the time must not keep us reading all the time.
		const share = 20
		j.next = now.Add(max(time.Second, share*time.Since(now)))
	}
}

// known is find with what was read.
func (j *jitNames) known(addr uint64) string {
	if name := j.code.find(addr); name != "" {
		return name
	}
	return j.text.find(addr)
}

func (j *jitNames) close() {
	if j != nil {
		j.list.close()
		j.dump.close()
	}
}

// problem says why names are missing, nil when nothing is wrong.
func (j *jitNames) problem() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.list.err, j.dump.err)
}

// refresh reads what was written since the last time. Of a process that has ended it is
// the rest of the files that are open.
func (j *jitNames) refresh() {
	text, code := len(j.text.lines), len(j.code.names.lines)
	defer func() {
		if len(j.text.lines) != text || len(j.code.names.lines) != code {
			j.version++
		}
	}()
	if status, err := j.p.Status(); err == nil {
		inner := j.p.Pid()
		if n := len(status.NSPIDs); n > 0 {
			inner = status.NSPIDs[n-1]
		}
		trusted := func(info os.FileInfo) error {
			return trustJITMap(info, status.UIDs[1], startedAt(j.p.StartTime()))
		}
		if j.list.open(j.p, fmt.Sprintf("tmp/perf-%d.map", inner), trusted) {
			j.text = jitMap{}
		}
		if name := j.mappedDump(); name != "" && j.dump.open(j.p, name, trusted) {
			j.code = jitDump{}
		}
	}
	j.list.more(maxJITMap, func(r io.ReaderAt, size int64) error {
		text, err := io.ReadAll(io.NewSectionReader(r, j.list.read, size-j.list.read))
		j.list.read += int64(len(text))
		j.text.add(text)
		return err
	})
	j.dump.more(maxJITDump, j.code.add)
}

// maxJITDump bounds the part of a jitdump file that is read. The code is in it, of which
// nothing is kept.
const maxJITDump = 4 << 30

// mappedDump returns the path of the process's jitdump file, below its root folder, "" when
// it has none mapped.
func (j *jitNames) mappedDump() string {
	maps, err := j.p.Maps()
	if err != nil {
		return ""
	}
	for k := range maps {
		if maps[k].Inode != 0 && isJITDump(maps[k].Path) {
			return strings.TrimPrefix(maps[k].Path, "/")
		}
	}
	return ""
}

// isJITDump says whether a file has the name of a jitdump file. It is mapped for executing,
// but there is no code in it.
func isJITDump(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasPrefix(base, "jit-") && strings.HasSuffix(base, ".dump")
}

// open opens the file, and says whether it is another one than before.
func (f *jitFile) open(p *process.Process, name string, trusted func(os.FileInfo) error) (another bool) {
	file, err := openBelowRoot(p.Pid(), name)
	if errors.Is(err, errJITFile) {
		f.err = err
	}
	if err != nil {
		return false // there is none, as mostly
	}
	info, err := file.Stat()
	if err == nil {
		err = trusted(info)
	}
	if err != nil {
		_ = file.Close() // nothing was read
		f.err = fmt.Errorf("/%s: %w", name, err)
		return false
	}
	if f.file != nil && os.SameFile(info, f.opened) && info.Size() >= f.read {
		_ = file.Close() // the same is open
		return false
	}
	f.close()
	*f = jitFile{file: file, opened: info}
	return true
}

// more lets the rest of the file be read, up to a size.
func (f *jitFile) more(most int64, read func(io.ReaderAt, int64) error) {
	if f.file == nil {
		return
	}
	info, err := f.file.Stat()
	if err == nil {
		err = read(f.file, min(info.Size(), most))
	}
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%d bytes, want at most %d: %w", info.Size(), most, errJITSize)
	}
	if err != nil {
		f.err = fmt.Errorf("%s: %w", f.file.Name(), err)
	}
}

func (f *jitFile) close() {
	if f.file != nil {
		_ = f.file.Close() // only read from
		f.file = nil
	}
}
