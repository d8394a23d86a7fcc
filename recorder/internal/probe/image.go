package probe

import (
	"fmt"
	"sort"
	"sync/atomic"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// Image is an image being planned. All addresses are link addresses.
type Image struct {
	Object *object.Image
	CFI    *cfi.Table // nil when the image has none
	// Module is the image's base name, for functions without one of their own.
	Module string
	// Loader says that this is the dynamic loader, which is left alone.
	Loader bool
	// Go is what is known of a Go program; nil if it is none.
	Go *GoImage

	texts    []text
	linkage  []object.Range // PLT sections and crt code; merged
	loads    []object.Range // what the file has of loaded segments; merged
	chunks   []chunk        // sorted by start
	pieces   []piece        // the chunks without overlaps
	textData []uint64       // addresses of code that are known to be data
	islands  bool           // windows may use padding elsewhere
}

// text is a run of executable bytes.
type text struct {
	start, end uint64
	data       []byte
	starts     bitset // an instruction of the linear sweep begins here
	targets    bitset // control may come here other than from the instruction before
	taken      bitset // of these, those that aren't known by direct jumps inside one chunk alone
	claimed    bitset // taken by a site or an island
}

// bitset is a set of offsets that several goroutines may add to.
type bitset []uint32

func newBitset(n uint64) bitset    { return make(bitset, (n+31)/32) }
func (b bitset) add(i uint64)      { atomic.OrUint32(&b[i/32], 1<<(i%32)) }
func (b bitset) has(i uint64) bool { return b[i/32]>>(i%32)&1 != 0 }
func (b bitset) remove(i uint64)   { atomic.AndUint32(&b[i/32], ^uint32(1<<(i%32))) }

// NewImage prepares an image. The object must stay open while the Image is in use.
func NewImage(o *object.Image, module string) (*Image, error) {
	if o.Format != object.ELF || o.Arch != object.AMD64 || o.Class != object.Class64 {
		return nil, fmt.Errorf("callreel: %s: %s code can't be probed, only amd64 ELF", o.Name(), o.Arch)
	}
	im := &Image{Object: o, Module: module}
	if err := im.findTexts(); err != nil {
		return nil, err
	}
	im.Go = readGo(o)
	for _, s := range o.Segments() {
		if s.Type == object.SegmentLoad && s.FileSize <= ^uint64(0)-s.Addr {
			im.loads = append(im.loads, object.Range{Start: s.Addr, End: s.Addr + s.FileSize})
		}
	}
	im.loads = merged(im.loads)
	data, addr, err := o.EHFrame()
	if err != nil {
		return nil, err
	}
	if len(data) > 0 {
		// A damaged table is still worth what it gives: its FDEs only add to what is known.
		im.CFI, err = cfi.ParseEHFrame(data, addr, cfi.Options{ByteOrder: o.ByteOrder, AddrSize: o.Class.AddrSize(), Name: o.Name()})
		if err != nil && im.CFI == nil {
			return nil, err
		}
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
		im.texts = append(im.texts, text{start: addr, end: addr + size, data: data,
			starts: newBitset(size), targets: newBitset(size), taken: newBitset(size), claimed: newBitset(size)})
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

// textAt returns the run of code that holds addr, nil when none does.
func (im *Image) textAt(addr uint64) *text {
	i := sort.Search(len(im.texts), func(i int) bool { return im.texts[i].end > addr })
	if i < len(im.texts) && im.texts[i].start <= addr {
		return &im.texts[i]
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

func (t *text) isTarget(addr uint64) bool  { return t.targets.has(addr - t.start) }
func (t *text) isClaimed(addr uint64) bool { return t.claimed.has(addr - t.start) }

func (t *text) claim(addr, end uint64) {
	for ; addr < end; addr++ {
		t.claimed.add(addr - t.start)
	}
}
