package plan

import (
	"fmt"
	"runtime"
	"sort"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// Image is an image being planned. All addresses are link addresses.
type Image struct {
	Object *object.Image
	// Module is the image's base name, for functions without one of their own.
	Module string
	// Loader says that this is the dynamic loader, which is left alone.
	Loader bool
	// NoSearch says that only functions are taken that symbols and CFI tell of, not those that the code itself shows.
	NoSearch bool
	// Go is what is known of a Go program; nil if it is none.
	Go *golang.Program

	// Marks are the link addresses of markers that are to be planned, Marked what has become of each, once the image is planned.
	Marks  []uint64
	Marked []Mark
	// Slots are the link addresses of slots by which calls are to be recorded, each once, Slotted what has become of each, once the image is
	// planned. The places where calls by them return to are in Marked, behind those of Marks.
	Slots   []uint64
	Slotted []Slot
	// MarksOnly says that of functions only those with a hook are to be planned.
	MarksOnly bool

	// Coverage is how much of its code functions have, once it is planned.
	Coverage Coverage

	processor *processor
	texts     []text
	*planning
}

// planning is what is known of an image while it is planned; Plan drops it. There may be a million functions, so the tables
// of them hold no pointers, which the garbage collector would have to follow.
type planning struct {
	cfi     *cfi.Table     // nil when the image has none
	fdes    int            // that it has at most, if they are as compilers make them
	linkage []object.Range // PLT sections and crt code; merged
	loads   []object.Range // what the file has of loaded segments; merged

	names      []string // by address, the best of each first
	chunks     []chunk  // sorted by start
	swept      []sweep  // of each batch of chunks
	pieces     []piece  // the chunks without overlaps
	parts      []int32  // indexes into chunks: those of each function together
	tables     []lists  // of each batch of functions: the jump tables that each refers to, sorted
	pads       []padTable
	data       []uint64      // addresses of code that symbols say are data
	labelled   bitset        // indexes of chunks inside which data holds an address
	labels     []label       // which relocations put into data; by address
	marksOf    map[int][]int // by function, which of Marked are in it
	calls      []slotCall    // by where they return to
	understood []bool        // by owner: the functions that could be planned at once
	again      bool          // functions with too few bytes are looked at once more: jumps may lead to displaced instructions
	islands    bool          // and may be as short as a jump to an island
}

// label is a word of data that holds an address inside a function.
type label struct{ at, to uint64 }

// text is a run of executable bytes.
type text struct {
	start, end uint64
	data       []byte
	starts     bitset   // an instruction of the linear sweep begins here
	targets    bitset   // control may come here other than from the instruction before
	taken      bitset   // of these, those that aren't known by direct jumps inside one chunk alone
	claimed    bitset   // taken by a site or an island
	pieces     []uint32 // index of the first of planning.pieces that ends behind start, start+indexStep …
}

// NewImage prepares an image. The object must stay open while the Image is in use.
func NewImage(o *object.Image, module string) (*Image, error) {
	processor := processorOf(o)
	if processor == nil {
		return nil, fmt.Errorf("callreel: %s: %s code can't be probed, only 64-bit ELF of amd64 and arm64", o.Name(), o.Arch)
	}
	im := &Image{Object: o, Module: module, processor: processor, planning: &planning{}}
	if err := im.findTexts(); err != nil {
		return nil, err
	}
	im.Go = golang.Read(o)
	for _, s := range o.Segments() {
		if s.Type == object.SegmentLoad && s.FileSize <= ^uint64(0)-s.Addr {
			im.loads = append(im.loads, object.Range{Start: s.Addr, End: s.Addr + s.FileSize})
		}
	}
	im.loads = merged(im.loads)
	if err := im.openCFI(); err != nil {
		return nil, err
	}
	im.linkage = append(im.linkage, o.PLTRanges()...)
	for _, name := range []string{".init", ".fini"} {
		if s := o.Section(name); s != nil {
			im.linkage = append(im.linkage, object.Range{Name: name, Start: s.Addr, End: s.Addr + s.Size})
		}
	}
	im.linkage = merged(im.linkage)
	return im, nil
}

// Native says whether the image's code is of the processor that this program runs on, so that what is planned can be done here.
func (im *Image) Native() bool { return im.processor.goarch == runtime.GOARCH }

// openCFI opens the table of .eh_frame. A damaged one is still worth what it gives: its FDEs only add to what is known.
func (im *Image) openCFI() error {
	o := im.Object
	data, addr, err := o.EHFrame()
	if err != nil || len(data) == 0 {
		return err
	}
	const smallest = 24
	im.fdes = len(data) / smallest
	hdr, hdrAddr, _ := o.EHFrameHdr() // to find FDEs by, if it is there and whole
	im.cfi, err = cfi.OpenEHFrame(cfi.Section{Data: hdr, Addr: hdrAddr}, cfi.Section{Data: data, Addr: addr},
		cfi.Options{ByteOrder: o.ByteOrder, AddrSize: o.Class.AddrSize(), Name: o.Name(), Take: o.Take})
	return err
}

// forget drops what only planning needs.
func (im *Image) forget() {
	im.planning = nil
	for i := range im.texts {
		t := &im.texts[i]
		t.starts, t.targets, t.taken, t.claimed, t.pieces = nil, nil, nil, nil, nil
	}
}

// findTexts takes the executable sections, or the executable segments of an image without section headers.
func (im *Image) findTexts() error {
	add := func(addr, size uint64) error {
		if size == 0 {
			return nil
		}
		data, err := im.Object.ReadAddr(addr, size)
		if err != nil {
			return err
		}
		if err := im.Object.Take(size/2, "a plan of so much code"); err != nil { // the bits of four sets
			return err
		}
		sets := newBitsets(size)
		im.texts = append(im.texts, text{start: addr, end: addr + size, data: data,
			starts: sets[0], targets: sets[1], taken: sets[2], claimed: sets[3]})
		return nil
	}
	for i := range im.Object.Sections() {
		s := &im.Object.Sections()[i]
		if s.Alloc() && s.Executable() && s.FileSize == s.Size {
			if err := add(s.Addr, s.Size); err != nil {
				return err
			}
		}
	}
	if len(im.texts) == 0 {
		for _, s := range im.Object.Segments() {
			if s.Type == object.SegmentLoad && s.Perm&object.PermX != 0 {
				if err := add(s.Addr, s.FileSize); err != nil {
					return err
				}
			}
		}
	}
	sort.Slice(im.texts, func(i, j int) bool { return im.texts[i].start < im.texts[j].start })
	for i := 1; i < len(im.texts); i++ {
		if im.texts[i].start < im.texts[i-1].end {
			return fmt.Errorf("callreel: %s: executable sections at %#x and %#x overlap", im.Object.Name(), im.texts[i-1].start, im.texts[i].start)
		}
	}
	return nil
}

// Code is the file's n bytes of code at addr, nil where there are none. They aren't to be changed.
func (im *Image) Code(addr uint64, n int) []byte {
	t := im.textAt(addr)
	if t == nil || addr+uint64(n) > t.end {
		return nil
	}
	return t.data[addr-t.start:][:n:n]
}

// textAt returns the run of code that holds addr, nil when none does.
func (im *Image) textAt(addr uint64) *text {
	lo, hi := 0, len(im.texts)
	for lo < hi { // this is called for each instruction or so: sort.Search takes twice as long
		t := &im.texts[(lo+hi)/2]
		switch {
		case addr < t.start:
			hi = (lo + hi) / 2
		case addr >= t.end:
			lo = (lo+hi)/2 + 1
		default:
			return t
		}
	}
	return nil
}

// isLinkage says whether addr is in linkage code.
func (im *Image) isLinkage(addr uint64) bool { return contains(im.linkage, addr) }

// markTarget notes that control may come to addr.
func (im *Image) markTarget(addr uint64) {
	if t := im.textAt(addr); t != nil {
		t.take(addr)
	}
}

func (t *text) take(addr uint64) {
	t.targets.add(addr - t.start)
	t.taken.add(addr - t.start)
}

// decode decodes the instruction at pc, which is to end at end or before.
func (t *text) decode(in *amd64.Inst, pc, end uint64) bool {
	// With the bytes behind the end at hand the decoder has less to check.
	return amd64.DecodeTo(in, t.data[pc-t.start:]) == nil && pc+uint64(in.Len) <= end
}

func (t *text) isTarget(addr uint64) bool  { return t.targets.has(addr - t.start) }
func (t *text) isClaimed(addr uint64) bool { return t.claimed.has(addr - t.start) }

func (t *text) claim(addr, end uint64)   { t.claimed.addRange(addr-t.start, end-t.start) }
func (t *text) unclaim(addr, end uint64) { t.claimed.removeRange(addr-t.start, end-t.start) }
