package plan

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/discover"
)

// foundCost is how many bits finding functions takes for each byte of text.
const foundCost = 6

// findMore adds the functions that neither symbols nor CFI tell of and that the code itself shows. There are none of those of a
// Go program, whose functions are all known, nor of the dynamic loader, which is left alone.
func (im *Image) findMore(ctx context.Context) error {
	if im.NoSearch || im.Loader || len(im.texts) == 0 {
		return nil
	}
	found, err := im.processor.search(im, ctx)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := im.Object.Take(uint64(len(found))*planCost, "a plan of so many functions"); err != nil {
		return err
	}
	for _, f := range found {
		if im.textAt(f.Start) != nil {
			im.chunks = append(im.chunks, chunk{start: f.Start, end: f.End, found: f.Evidence, inner: f.Part})
			im.markTarget(f.Start)
		}
	}
	slices.SortStableFunc(im.chunks, func(a, b chunk) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// searchAMD64 looks for them in code of x86-64.
func (im *Image) searchAMD64(ctx context.Context) ([]discover.Function, error) {
	in := &discover.Input{Fixed: im.Object.Type == object.Executable, Pointers: im.eachPointer, Read: im.readSome}
	size := uint64(0)
	for i := range im.texts {
		t := &im.texts[i]
		in.Texts = append(in.Texts, discover.Text{Start: t.start, Data: t.data})
		size += t.end - t.start
	}
	if im.Object.Take(size*foundCost/8, "a search for functions in so much code") != nil {
		return nil, nil // what is known does without
	}
	for i := range im.chunks {
		c := &im.chunks[i]
		in.Known = append(in.Known, discover.Range{Start: c.start, End: c.end})
	}
	for _, r := range im.linkage {
		in.Skip = append(in.Skip, discover.Range{Start: r.Start, End: r.End})
	}
	return discover.Find(ctx, in)
}

// foundName is what a function is called that was found at addr.
func foundName(addr uint64) string { return "found_0x" + strconv.FormatUint(addr, 16) }

// readSome returns up to n bytes of what the file has at addr.
func (im *Image) readSome(addr, n uint64) []byte {
	i, found := slices.BinarySearchFunc(im.loads, addr, func(r object.Range, a uint64) int {
		switch {
		case r.End <= a:
			return -1
		case r.Start > a:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	b, err := im.Object.ReadAddr(addr, min(n, im.loads[i].End-addr))
	if err != nil {
		return nil
	}
	return b
}

// eachPointer calls visit with what data holds of code: the entry point, what relocations put there, and in an image that isn't
// relocated each word.
func (im *Image) eachPointer(visit func(uint64)) error {
	visit(im.Object.Entry())
	if err := im.Object.RelativeTargets(func(_, to uint64) { visit(to) }); err != nil || im.Object.Type != object.Executable {
		return err
	}
	least, most := im.texts[0].start, im.texts[len(im.texts)-1].end
	for _, r := range im.loads {
		data, err := im.Object.ReadAddr(r.Start, r.End-r.Start)
		if err != nil {
			return err
		}
		for off := -r.Start & 7; off+8 <= uint64(len(data)); off += 8 {
			if t := im.textAt(r.Start + off); t != nil { // code is no data
				off = (t.end-r.Start+7)&^7 - 8
				continue
			}
			if word := binary.LittleEndian.Uint64(data[off:]); word-least < most-least {
				visit(word)
			}
		}
	}
	return nil
}

// Coverage is how many bytes of an image's code belong to functions.
type Coverage struct {
	Text  uint64 // all of it, without linkage code
	Known uint64 // of functions that symbols or CFI tell of
	Found uint64 // of those that were found in the code
}

// cover finds the image's coverage.
func (im *Image) cover() {
	for i := range im.texts {
		im.Coverage.Text += im.texts[i].end - im.texts[i].start
	}
	for _, r := range im.linkage {
		im.Coverage.Text -= min(im.Coverage.Text, r.End-r.Start)
	}
	reach := uint64(0)
	for i := range im.chunks {
		c := &im.chunks[i]
		n := c.end - min(max(c.start, reach), c.end)
		reach = max(reach, c.end)
		switch {
		case c.linkage:
		case c.found != 0:
			im.Coverage.Found += n
		default:
			im.Coverage.Known += n
		}
	}
}
