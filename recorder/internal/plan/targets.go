package plan

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// markData marks what data says about code addresses: relocations, words of an image that isn't relocated, the entry
// point.
func (im *Image) markData() error {
	im.labelled = make(bitset, (len(im.chunks)+31)/32)
	im.markTaken(im.Object.Entry())
	if err := im.markRelocated(); err != nil || im.Object.Type != object.Executable {
		return err
	}
	if len(im.texts) == 0 {
		return nil
	}
	least, most := im.texts[0].start, im.texts[len(im.texts)-1].end
	for _, s := range im.loads {
		data, err := im.Object.ReadAddr(s.Start, s.End-s.Start)
		if err != nil {
			return err
		}
		data = data[min(-s.Start&7, uint64(len(data))):]
		each(len(data)/8, func() func(from, to int) {
			return func(from, to int) {
				for i := from; i < to; i++ {
					if word := binary.LittleEndian.Uint64(data[8*i:]); word-least < most-least {
						im.markTaken(word)
					}
				}
			}
		})
	}
	return nil
}

// markRelocated marks what relocations put into data. They are marked on other cores than the one that reads them.
func (im *Image) markRelocated() error {
	const block = 1 << 13
	var wg sync.WaitGroup
	var mu sync.Mutex // guards im.labels
	var list []label
	mark := func() {
		marked := list
		wg.Go(func() {
			labels := slices.DeleteFunc(marked, func(l label) bool { return !im.markTaken(l.to) })
			mu.Lock()
			im.labels = append(im.labels, labels...)
			mu.Unlock()
		})
		list = nil
	}
	err := im.Object.RelativeTargets(func(at, to uint64) {
		if list == nil {
			list = make([]label, 0, block)
		}
		if list = append(list, label{at, to}); len(list) == block {
			mark()
		}
	})
	mark()
	wg.Wait()
	slices.SortFunc(im.labels, func(a, b label) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.to, b.to)) })
	return err
}

// markTaken marks an address of code that data holds. Inside a function it is a label, the target of an indirect jump: it says whether it
// is that.
func (im *Image) markTaken(addr uint64) bool {
	t := im.textAt(addr)
	if t == nil {
		return false
	}
	t.take(addr)
	// In an image that isn't relocated many a number looks like an address, but seldom like that of an instruction.
	if !t.starts.has(addr - t.start) {
		return false
	}
	k := im.chunkAt(addr)
	if k < 0 || im.chunks[k].start == addr {
		return false
	}
	im.labelled.add(uint64(k))
	return true
}

// refuseData notes the chunks in which there is data: symbols say so, or instructions read or write there.
func (im *Image) refuseData() {
	refuse := func(addr uint64) {
		if k := im.chunkAt(addr); k >= 0 && im.chunks[k].badAt == 0 && !im.isImmediate(addr) {
			im.chunks[k].badAt = addr
		}
	}
	for _, addr := range im.data {
		refuse(addr)
	}
	for i := range im.swept {
		for _, addr := range im.swept[i].data.all {
			refuse(addr)
		}
	}
}

// isImmediate says whether addr is that of the 8-byte immediate of an instruction. V8 loads constants from there when the
// same one is wanted again. It is marked as a target, which keeps the instruction where it is.
func (im *Image) isImmediate(addr uint64) bool {
	t := im.textAt(addr)
	for off := addr - t.start; addr-t.start-off < amd64.MaxLen; off-- {
		if t.starts.has(off) {
			in, err := amd64.Decode(t.data[off:])
			return err == nil && in.ImmSize == 8 && uint64(in.ImmOff) == addr-t.start-off
		}
		if off == 0 {
			break
		}
	}
	return false
}

// tableReader reads the jump tables of one function at a time.
type tableReader struct {
	im     *Image
	f      *function
	labels []uint64 // inside the function, whose addresses its code computes
	tables []uint64 // that were found
}

// mark reads, at every data address that the function's code refers to, a table of 32-bit offsets from its own start for as
// long as they lead into the function; and the same as offsets from each label whose address the code computes, for computed
// gotos. What isn't a table gives at worst a target too many.
func (r *tableReader) mark(f *function) {
	im := r.im
	r.f, r.labels, r.tables = f, r.labels[:0], r.tables[:0]
	if f.why != ReasonNone {
		return
	}
	// Compilers make tables of at most some entries for each case; this is to bound what a made-up image can cost.
	budget := 4096
	for _, p := range im.partsOf(f) {
		c := &im.chunks[p]
		budget += 16 * int(c.end-c.start)
		for _, at := range im.bases(int(p)) {
			if im.inFunction(f, at) && at != im.entryOf(f).start {
				r.labels = append(r.labels, at)
			}
		}
	}
	for _, p := range im.partsOf(f) {
		for _, at := range im.bases(int(p)) {
			budget -= r.markTable(at, at, budget)
			for _, l := range r.labels {
				budget -= 1 + r.markTable(at, l, budget)
			}
			if budget <= 0 {
				f.why = ReasonJump
				return
			}
		}
	}
	slices.Sort(r.tables)
}

// markTable marks the targets of the table at addr, offsets from origin, and returns how many there are, at most that many.
// Cold parts that were not found to be the function's count, too, and what may be one: code without a name.
func (r *tableReader) markTable(addr, origin uint64, most int) (n int) {
	im := r.im
	owner := im.entryOf(r.f).owner
	for n < most {
		b, err := im.Object.ReadAddr(addr+4*uint64(n), 4)
		if err != nil {
			break
		}
		to := origin + uint64(int64(int32(binary.LittleEndian.Uint32(b))))
		k := im.chunkAt(to)
		if to == addr || k < 0 {
			break
		}
		if c := &im.chunks[k]; c.owner != owner && !c.isPart() && (c.names.n > 0 || to != c.start) {
			break
		}
		im.markTarget(to)
		n++
	}
	if n > 0 {
		r.tables = append(r.tables, origin)
	}
	return n
}

// markTables reads the jump tables of all functions.
func (im *Image) markTables(fns []function) {
	im.tables = hugepage.Make[lists](batches(len(fns)))
	each(len(fns), func() func(from, to int) {
		r := tableReader{im: im}
		return func(from, to int) {
			for i := from; i < to; i++ {
				r.mark(&fns[i])
				im.tables[i/batchSize].put(i, r.tables)
			}
		}
	})
}

// inFunction says whether addr is inside one of the function's parts.
func (im *Image) inFunction(f *function, addr uint64) bool {
	entry := im.entryOf(f)
	if !entry.overlap && addr >= entry.start && addr < entry.end {
		return true
	}
	k := im.chunkAt(addr)
	return k >= 0 && im.chunks[k].owner == entry.owner
}
