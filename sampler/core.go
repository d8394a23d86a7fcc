package sampler

import (
	"context"
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/sampler/corefile"
	"github.com/callreel/callreel/unwind"
)

// errOtherFile is why the file at an image's path is not used.
var errOtherFile = errors.New("the file there now is not the one that was loaded")

// errNoFile is why a mapping of the core has no image.
var errNoFile = errors.New("neither its file nor its code in the core can be read")

// Core takes the stacks of all threads of the process that a core file is of. What the
// core leaves out, as it mostly does with code, is read from the files that were
// loaded, at the paths that the core names; a file with another build ID than the core
// shows is not used. The Capture must be closed.
//
// The errors are those of corefile.Open, and ctx's.
func Core(ctx context.Context, path string, o Options) (*Capture, error) {
	o.allow()
	f, err := corefile.OpenWithin(path, o.Memory)
	if err != nil {
		return nil, err
	}
	defer f.Close() // names and images do not alias it
	return coreStacks(ctx, f, o)
}

func coreStacks(ctx context.Context, f *corefile.File, o Options) (*Capture, error) {
	m := &coreMemory{core: f, memory: o.Memory}
	m.space = newSpace(coreRegions(f), m.open, nil)
	c := &Capture{
		PID: f.Process.PID, Name: f.Process.Name, Arch: f.Arch.String(), Images: m.space.images,
		Threads: make([]Thread, 0, len(f.Threads)), space: m.space,
	}
	o.prepare(ctx, m.space.images)
	w := o.walker(f.Arch, m.space)
	var frames []unwind.Frame
	budget := maxFrames
	for k := range f.Threads {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		from := &f.Threads[k]
		t := Thread{TID: from.TID, Signal: from.Signal}
		snapshot := unwind.Snapshot{Regs: from.Regs, Memory: m, Frozen: true}
		if sp, ok := from.Regs.Get(f.Arch.SP()); ok {
			snapshot.Addr = sp - min(sp, f.Arch.RedZone())
			if snapshot.Stack = f.Bytes(snapshot.Addr, stackCopied); snapshot.Stack == nil {
				snapshot.Addr, snapshot.Stack = sp, f.Bytes(sp, stackCopied)
			}
		}
		frames, t.End = w.Walk(&snapshot, frames[:0])
		frames, t.End = within(&budget, frames, t.End)
		t.Frames = m.space.frames(frames, &o)
		c.Threads = append(c.Threads, t)
	}
	for _, im := range c.Images {
		im.ready()
	}
	c.Problems = append(append(c.Problems, f.Problems()...), m.space.problems()...)
	return c, nil
}

// coreRegions are the mappings of a core. Only the auxiliary vector tells the vdso.
func coreRegions(f *corefile.File) []region {
	regions := make([]region, len(f.Maps))
	for k, m := range f.Maps {
		r := region{start: m.Start, end: m.End, offset: m.Offset, page: f.Auxv.PageSize, path: m.Path, exec: m.Exec, write: m.Write}
		if m.Path == "" && f.Auxv.VDSO >= m.Start && f.Auxv.VDSO < m.End {
			r.special = "[vdso]"
		}
		regions[k] = r
	}
	return regions
}

const (
	// stackCopied is how much of a stack is copied ahead; what lies above is read as other
	// memory is.
	stackCopied = 1 << 20
)

// coreMemory is a core's memory, with the files for what the core leaves out.
type coreMemory struct {
	core   *corefile.File
	space  *space
	memory *object.Allowance // for files
	// opening keeps the search for an image's file from asking for that image's bytes.
	opening *Image
}

// ReadMemory implements unwind.Memory.
func (m *coreMemory) ReadMemory(addr uint64, buf []byte) (int, error) {
	done := 0
	for done < len(buf) {
		at := addr + uint64(done)
		part := m.core.Bytes(at, uint64(len(buf)-done))
		if len(part) == 0 {
			part = m.fileBytes(at, uint64(len(buf)-done))
		}
		if len(part) == 0 {
			return done, nil
		}
		done += copy(buf[done:], part)
	}
	return done, nil
}

// fileBytes returns the bytes of the file that is mapped at an address, up to the end
// of the mapping and most of them. What the process could write may have been other than in the file.
func (m *coreMemory) fileBytes(addr, most uint64) []byte {
	c := m.core.Mapping(addr)
	if c == nil || c.Write || c.Path == "" {
		return nil
	}
	im := m.space.image(addr)
	if im == nil || im == m.opening || !im.ready() {
		return nil
	}
	from, size := c.Offset+(addr-c.Start), im.file.Size()
	if from >= size {
		return nil
	}
	b, err := im.file.Bytes(from, min(most, size-from, c.End-addr))
	if err != nil {
		return nil // as of memory that nobody has
	}
	return b
}

// open opens an image's file if it is the one that was loaded: the kernel writes the
// first page of each into the core, where the build ID is.
func (m *coreMemory) open(im *Image) (*object.Image, error) {
	m.opening = im
	defer func() { m.opening = nil }()
	if im.regions[0].special != "" {
		return imageFromMemory(im, m, m.memory)
	}
	want := m.core.ImageID(im.Load)
	file, err := object.Opener{Memory: m.memory}.Open(im.Path)
	if err == nil {
		if want == "" || file.ID() == want {
			return file, nil
		}
		err = errors.Join(fmt.Errorf("%w: its build ID is %s, want %s", errOtherFile, orNone(file.ID()), want), file.Close())
	}
	if !m.hasCode(im) {
		return nil, err
	}
	if file, memoryErr := imageFromMemory(im, m, m.memory); memoryErr == nil {
		return file, nil
	}
	return nil, fmt.Errorf("%w: %w", errNoFile, err)
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// hasCode says whether the core holds an image's code.
func (m *coreMemory) hasCode(im *Image) bool {
	for _, r := range im.regions {
		if r.exec && len(m.core.Bytes(r.start, 1)) > 0 {
			return true
		}
	}
	return false
}
