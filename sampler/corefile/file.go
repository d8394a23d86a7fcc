package corefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// ErrNotCore is wrapped by the error of Open and Parse for files of other kinds.
var ErrNotCore = errors.New("not a core file")

// ErrArch is wrapped by the error for cores of an architecture that is not supported.
var ErrArch = errors.New("architecture not supported")

// A File is an open core. Its methods may be called from several goroutines at once,
// except Close.
type File struct {
	Arch    *unwind.Arch
	Process Process
	Threads []Thread // the one that the signal was for comes first
	Maps    []Mapping
	Auxv    Auxv

	image    *object.Image
	problems []error
	lost     atomic.Pointer[error] // the first of memory that could not be read
	unnamed  []fileRange
}

// Process is what the core says of the process as a whole (NT_PRPSINFO).
type Process struct {
	PID     int
	Name    string // at most 15 bytes
	Command string // the start of its command line
}

// A Thread is one thread (NT_PRSTATUS).
type Thread struct {
	TID    int
	Signal int // that ended the process, or 0
	Regs   unwind.Registers
	TLS    uint64 // thread pointer (x86-64), 0 when not known
	Info   Siginfo
}

// Siginfo is what the kernel said of a signal (NT_SIGINFO).
type Siginfo struct {
	Known        bool
	Signal, Code int    // si_signo and si_code
	Addr         uint64 // of a fault
}

// A Mapping is a range of memory [Start, End), of which the first Size bytes are in
// the core.
type Mapping struct {
	Start, End  uint64
	Size        uint64
	Offset      uint64 // in Path, bytes
	Path        string // of the file mapped there (NT_FILE), "" for none
	Read, Write bool
	Exec        bool

	off uint64 // in the core
}

// Auxv holds the values of the auxiliary vector that locate the program and the vdso, and say by which pages images were mapped.
type Auxv struct {
	Entry    uint64 // AT_ENTRY
	Phdr     uint64 // AT_PHDR
	VDSO     uint64 // AT_SYSINFO_EHDR
	PageSize uint64 // AT_PAGESZ, in bytes; 0 if it isn't there, or no size of a page
}

// Open opens a core and reads its headers and notes. It must be closed.
func Open(path string) (*File, error) { return OpenWithin(path, nil) }

// OpenWithin is Open with a bound on what the file may make us keep of it; nil means one
// of its own.
func OpenWithin(path string, memory *object.Allowance) (*File, error) {
	im, err := object.Opener{Memory: memory}.Open(path)
	if errors.Is(err, object.ErrUnknownFormat) {
		return nil, fmt.Errorf("core: %s: %w", path, ErrNotCore)
	}
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	f, err := read(im)
	if err != nil {
		return nil, errors.Join(err, im.Close())
	}
	return f, nil
}

// Parse is Open for a core in memory, which is kept and must not change.
func Parse(name string, data []byte) (*File, error) {
	im, err := object.Parse(name, data)
	if errors.Is(err, object.ErrUnknownFormat) {
		return nil, fmt.Errorf("core: %s: %w", name, ErrNotCore)
	}
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	return read(im)
}

// Close closes the file. Memory that was read before stays valid.
func (f *File) Close() error { return f.image.Close() }

// Problems says what could not be read: notes that are damaged, memory that a file
// that was cut off no longer has.
func (f *File) Problems() []error {
	if err := f.lost.Load(); err != nil {
		return append(slices.Clone(f.problems), fmt.Errorf("core: %w", *err))
	}
	return f.problems
}

func read(im *object.Image) (*File, error) {
	if im.Format != object.ELF || im.Type != object.Core {
		return nil, fmt.Errorf("core: %s: %w: it is an %v file of another type", im.Name(), ErrNotCore, im.Format)
	}
	f := &File{image: im, Arch: unwind.ArchOf(im.Arch)}
	if f.Arch == nil || !littleEndian(im) {
		return nil, fmt.Errorf("core: %s: %w: %v", im.Name(), ErrArch, im.Arch)
	}
	f.segments()
	f.notes()
	f.nameMappings()
	if len(f.Threads) == 0 {
		return nil, errors.Join(fmt.Errorf("core: %s: %w: it has no thread (NT_PRSTATUS)", im.Name(), ErrNotCore),
			errors.Join(f.problems...))
	}
	return f, nil
}

func littleEndian(im *object.Image) bool { return im.ByteOrder.Uint16([]byte{1, 0}) == 1 }

// maxProblems bounds the list of what could not be read.
const maxProblems = 100

func (f *File) problem(format string, args ...any) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fmt.Errorf("core: %s: "+format, append([]any{f.image.Name()}, args...)...))
	}
}

// segments makes the mappings of the loadable segments.
func (f *File) segments() {
	size := f.image.Size()
	missing := uint64(0)
	for _, s := range f.image.Segments() {
		if s.Type != object.SegmentLoad || s.MemSize == 0 || s.Addr+s.MemSize < s.Addr {
			continue
		}
		m := Mapping{
			Start: s.Addr, End: s.Addr + s.MemSize,
			Read: s.Perm&object.PermR != 0, Write: s.Perm&object.PermW != 0, Exec: s.Perm&object.PermX != 0,
		}
		from, n := min(s.Off, size), min(s.FileSize, s.MemSize)
		if have := size - from; n > have {
			missing += n - have
			n = have
		}
		m.off, m.Size = from, n
		f.Maps = append(f.Maps, m)
	}
	if missing > 0 {
		f.problem("it is cut off: %d bytes of memory are missing", missing)
	}
	slices.SortStableFunc(f.Maps, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	// Lookups need ranges that are disjoint, which no kernel violates.
	whole := len(f.Maps)
	end := uint64(0)
	f.Maps = slices.DeleteFunc(f.Maps, func(m Mapping) bool {
		if m.Start < end {
			return true
		}
		end = m.End
		return false
	})
	if n := whole - len(f.Maps); n > 0 {
		f.problem("%d of its segments overlap others", n)
	}
}

// Mapping returns the mapping that holds an address, nil when none does.
func (f *File) Mapping(addr uint64) *Mapping {
	k := sort.Search(len(f.Maps), func(k int) bool { return f.Maps[k].Start > addr }) - 1
	if k < 0 || addr >= f.Maps[k].End {
		return nil
	}
	return &f.Maps[k]
}

// Bytes returns what the core holds from an address on, up to the end of the mapping's
// part in the core and most bytes of it; nil when it holds nothing there or the file
// can't be read. The slice is good until Close.
func (f *File) Bytes(addr, most uint64) []byte {
	m := f.Mapping(addr)
	if m == nil || addr-m.Start >= m.Size {
		return nil
	}
	at := addr - m.Start
	b, err := f.image.Bytes(m.off+at, min(most, m.Size-at))
	if err != nil {
		f.lost.CompareAndSwap(nil, &err)
		return nil
	}
	return b
}

// ReadMemory implements unwind.Memory with what is in the core.
func (f *File) ReadMemory(addr uint64, buf []byte) (int, error) {
	done := 0
	for done < len(buf) {
		part := f.Bytes(addr+uint64(done), uint64(len(buf)-done))
		if len(part) == 0 {
			return done, nil
		}
		done += copy(buf[done:], part)
	}
	return done, nil
}
