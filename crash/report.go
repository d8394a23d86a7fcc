package crash

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/symbolize"
	"github.com/callreel/callreel/unwind"
)

// ErrUnknownFormat is wrapped by the error of [Open] and [Read] for what is no crash report that
// this package reads.
var ErrUnknownFormat = errors.New("not a crash report of a known format")

// ErrDamaged is wrapped by the errors of reports that are of a known format, but can't be read.
var ErrDamaged = errors.New("the report is damaged")

// A Format is the kind of file that a report was read from.
type Format string

// A Report is what a crash report says. It must be closed.
type Report struct {
	Format  Format
	OS      string // "linux", "android", "macos", "ios", "windows" …; "" when not known
	Version string // of the system, as the report has it
	Arch    string // Go's name of the architecture, "" when not known
	Time    string // as the report has it; RFC 3339 where it has a number; "" when it has none
	Process Process
	Reason  Reason
	// Annotations are what the program told its crash reporter.
	Annotations []Annotation
	Images      []*Image
	Threads     []*Thread // the crashed one first
	Code        []Instruction

	// Problems are what was wrong without ending the work, and what could not be read.
	Problems []error

	arch     *unwind.Arch
	memory   Memory
	maps     []mapping // sorted and disjoint; nil when the report lists none
	closers  []io.Closer
	bytes    *codeBytes
	walked   bool // its stacks were walked here
	unlisted map[string]*Image
}

// codeBytes is code that a report has apart from other memory.
type codeBytes struct {
	start uint64
	data  []byte
}

// archs are the architectures whose stacks can be walked and whose code can be shown.
var archs = map[string]*unwind.Arch{"amd64": unwind.AMD64, "386": unwind.I386, "arm64": unwind.ARM64}

// A Process is what a report says of the process as a whole.
type Process struct {
	PID  int
	Name string
	Path string
}

// A Reason is why a report was written.
type Reason struct {
	Text    string // in a line: "SIGSEGV (SEGV_MAPERR) at 0x10"
	Signal  string // "SIGSEGV", "EXC_BAD_ACCESS", "EXCEPTION_ACCESS_VIOLATION"; "" when not known
	Code    string // more about it: "SEGV_MAPERR", "KERN_INVALID_ADDRESS"
	Address uint64 // that it is about
	Has     bool   // there is an Address
	Details []string
}

// An Image is one file that the process had loaded.
type Image struct {
	ID   string // build ID or UUID in lower-case hexadecimal; GUID and age for Windows
	Path string // in the process
	// DebugFile and CodeID are what symbol servers of Windows file its PDB and itself under, "" elsewhere.
	DebugFile, CodeID string

	Arch string // Apple's or Go's name; "" when not known
	Load uint64
	Size uint64 // bytes, 0 when not known

	// Found says that its file, or its symbols, are at hand. Used says that it is on a stack.
	Found, Used bool
	// File is the path of its file on this machine, "" when there is none.
	File string
	// Why says why the file can't be had.
	Why string

	prefix bool   // ID is only the first bytes of the build ID
	byPath bool   // the file at Path is taken where no ID is known
	linked bool   // Load isn't known: addresses in it are link addresses
	offset uint64 // in the file, of what is at Load
	page   uint64 // the size of the pages of the kernel that has mapped it, 0 if that isn't known
	file   *object.Image
	unwind *unwind.FileImage
	slide  uint64
	opened bool
	asked  bool // the network, too
	named  *symbolize.Image
}

// end is the first address behind the image.
func (i *Image) end() uint64 {
	if i.Load+i.Size < i.Load {
		return ^uint64(0)
	}
	return i.Load + i.Size
}

// A Register is one register of a thread.
type Register struct {
	Name  string
	Value uint64
}

// A Thread is one thread, or another stack that a report has, as that of an exception.
type Thread struct {
	TID       uint64
	Name      string
	State     string // "" when not known
	Crashed   bool
	Registers []Register
	Frames    []Frame
	// End is how the stack ended: "complete", one of the reasons of package unwind, or "report"
	// for a stack that the report itself holds. EndSays is the same in words where it isn't whole.
	End, EndSays string

	regs  *unwind.Registers // nil when the stack is the report's own
	raw   []rawFrame
	stack bool // raw's first address is a return address
}

// rawFrame is a frame as a report has it.
type rawFrame struct {
	addr     uint64
	kind     symbolize.Kind
	image    *Image // that the report says it is in; nil: look for it
	function string
	offset   uint64 // from the function's start
	file     string
	line     uint32
	inlined  bool
	module   string // that the report names for it, where its list of images may lack it
	base     uint64 // of module; 0 when not known
}

// By is how a frame was found.
type By string

// How frames are found.
const (
	ByContext      By = "context"       // the thread's registers
	ByCFI          By = "cfi"           // call frame information
	ByFramePointer By = "frame-pointer" // a frame record
	ByScan         By = "scan"          // what looks like a return address on the stack; it may be stale
	ByReport       By = "report"        // the report has the stack
)

// A Frame is one call. Where a call was inlined there is a frame for it, before the one that it is
// inlined into.
type Frame struct {
	Address  uint64
	Image    *Image // nil when none is known
	Offset   uint64 // from Image.Load
	Function string // demangled; "" when not known
	Linkage  string
	File     string
	Line     uint32
	Inlined  bool
	By       By
	Rule     string // package unwind's name of the way, where that says more
	SP       uint64 // 0 when not known
	Exact    bool   // Address is an instruction, not a return address
	Signal   bool   // the code that a signal handler returns to
	Said     bool   // the name is the report's own
	Why      string // why there is no name
}

// Memory is what a report holds of the process's memory.
type Memory interface {
	// ReadMemory fills buf from addr and returns how many bytes it got: fewer than asked for
	// where the memory ends.
	ReadMemory(addr uint64, buf []byte) (int, error)
	// Ranges lists what is there, sorted and disjoint.
	Ranges() []Range
}

// A Range is addresses from Start up to, but not including, End.
type Range struct{ Start, End uint64 }

// mapping is a part of the address space.
type mapping struct {
	Range
	exec, write bool
}

// maxProblems bounds the list of what could not be read.
const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Errorf("crash: "+format, args...))
	}
}

// Close closes the report and the files of its images. What was read stays valid.
func (r *Report) Close() error {
	var errs []error
	for _, im := range r.Images {
		if im.file != nil {
			errs = append(errs, im.file.Close())
			im.file, im.unwind = nil, nil
		}
	}
	for _, c := range r.closers {
		errs = append(errs, c.Close())
	}
	r.closers, r.memory = nil, nil
	return errors.Join(errs...)
}

// image returns the image that holds an address, nil when none does. Images are sorted by Load.
func (r *Report) image(addr uint64) *Image {
	lo, hi := 0, len(r.Images)
	for lo < hi {
		if mid := (lo + hi) / 2; r.Images[mid].Load > addr {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 {
		return nil
	}
	im := r.Images[lo-1]
	switch {
	case im.linked:
		return nil
	case im.Size == 0 && (lo == len(r.Images) || addr < r.Images[lo].Load):
		return im
	case addr < im.end():
		return im
	}
	return nil
}

// Missing lists the images on stacks that are wanted and not at hand, in the order of their
// addresses: those whose code was needed to walk a stack, and those without symbols.
func (r *Report) Missing() []*Image {
	var out []*Image
	for _, im := range r.Images {
		if im.Used && im.File == "" && !im.kernels() && (!im.Found || r.walked) {
			out = append(out, im)
		}
	}
	return out
}

// kernels says whether an image is the kernel's own, which has no file.
func (i *Image) kernels() bool {
	return strings.HasPrefix(i.Path, "[") || strings.HasPrefix(i.Path, "linux-vdso.so") || strings.HasPrefix(i.Path, "linux-gate.so")
}
