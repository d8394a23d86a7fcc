package mapped

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
)

// compareText refuses functions whose code in memory isn't the file's: a debugger's breakpoint, another tool's patch.
func (im *Image) compareText(p *process.Process) error {
	for i := range im.Plan {
		if f := &im.Plan[i]; probed(f) && !im.mapped(f) {
			f.Refuse(plan.ReasonUnmapped, 0)
		}
	}
	for _, marks := range [][]plan.Mark{im.Marks, im.Returns} {
		for i := range marks {
			if f := &marks[i].Alone; len(f.Sites) > 0 && !im.mapped(f) {
				f.Refuse(plan.ReasonUnmapped, 0)
			}
		}
	}
	for _, m := range im.Text {
		link := m.Start - im.Slide
		file, err := im.FileBytes(link, m.Size())
		if err != nil {
			return err
		}
		same, err := holds(p, m.Start, file)
		if err != nil {
			return err
		}
		if same {
			continue
		}
		buf := make([]byte, len(file))
		if _, err := p.ReadAt(buf, m.Start); err != nil {
			return err
		}
		im.refuseDiffering(link, buf, file)
		if im.differed == nil {
			im.differed = map[uint64]bool{}
		}
		for i := range file {
			if buf[i] != file[i] {
				im.differed[m.Start+uint64(i)] = true
			}
		}
	}
	return nil
}

// holds says whether that is what the process has at addr.
func holds(p *process.Process, addr uint64, want []byte) (bool, error) {
	buf := make([]byte, min(len(want), 1<<20))
	for len(want) > 0 {
		buf = buf[:min(len(want), len(buf))]
		if _, err := p.ReadAt(buf, addr); err != nil {
			return false, err
		}
		if !bytes.Equal(buf, want[:len(buf)]) {
			return false, nil
		}
		addr, want = addr+uint64(len(buf)), want[len(buf):]
	}
	return true, nil
}

// FileBytes returns what the file has for a mapped range, which at its end may be less.
func (im *Image) FileBytes(link, size uint64) ([]byte, error) {
	for _, s := range im.Object.Segments() {
		if s.Type != object.SegmentLoad || s.Perm&object.PermX == 0 {
			continue
		}
		if link+size <= s.Addr || link >= s.Addr+s.FileSize {
			continue
		}
		// The mapping begins on the page of the segment's first byte.
		off := s.Off - (s.Addr - link)
		if link > s.Addr {
			off = s.Off + (link - s.Addr)
		}
		have := im.Object.Size()
		if off > have {
			return nil, fmt.Errorf("callreel: %s: the text at %#x is beyond the end of the file", im.Path, link)
		}
		data, err := im.Object.Bytes(off, min(size, have-off))
		if err != nil {
			return nil, fmt.Errorf("callreel: %w", err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("callreel: %s: no segment for the text at %#x", im.Path, link)
}

// probed says whether anything is to be written for a function.
func probed(f *plan.Function) bool { return f.Tier != plan.TierNone || len(f.HookSites()) > 0 }

// mapped says whether the code of a function is where it is to be.
func (im *Image) mapped(f *plan.Function) bool {
	for _, m := range im.Text {
		if a := f.Addr + im.Slide; a >= m.Start && a < m.End {
			return true
		}
	}
	return false
}

// refuseDiffering refuses the functions that have a site in bytes that differ.
func (im *Image) refuseDiffering(link uint64, mem, file []byte) {
	for i := range im.Plan {
		f := &im.Plan[i]
		for _, s := range slices.Concat(f.Sites, f.HookSites()) {
			if differs(link, mem, file, s.Addr, s.End()) || s.Island != 0 && differs(link, mem, file, s.Island, s.Island+8) {
				f.Refuse(plan.ReasonText, s.Addr)
				break
			}
		}
	}
	for _, marks := range [][]plan.Mark{im.Marks, im.Returns} {
		for i := range marks {
			f := &marks[i].Alone
			for _, s := range f.Sites {
				if differs(link, mem, file, s.Addr, s.End()) || s.Island != 0 && differs(link, mem, file, s.Island, s.Island+8) {
					f.Refuse(plan.ReasonText, s.Addr)
					break
				}
			}
		}
	}
}

func differs(link uint64, mem, file []byte, from, to uint64) bool {
	if from < link || from-link >= uint64(len(file)) {
		return false
	}
	a, b := from-link, min(to-link, uint64(len(file)))
	return !bytes.Equal(mem[a:b], file[a:b])
}

// VerifyText says whether the executable pages of the images are, byte for byte, what their files say, but for what
// differed before we came.
//
// An image that isn't where it was any more has taken what was done to it along.
func (im *Image) VerifyText(p *process.Process) (bool, error) {
	now, err := p.Maps()
	if err != nil {
		return false, err
	}
	for _, m := range im.Text {
		if !process.SameMapping(im.Text, now, m.Start) {
			continue
		}
		file, err := im.FileBytes(m.Start-im.Slide, m.Size())
		if err != nil {
			return false, err
		}
		same, err := holds(p, m.Start, file)
		if err == nil && same {
			continue
		}
		if err != nil && !errors.Is(err, process.ErrNoMapping) {
			return false, err
		}
		same, err = text.SameThere(p, m.Start, file, func(addr uint64) bool { return im.differed[addr] })
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// IsPatched says whether anything is to be written in it.
func (im *Image) IsPatched() bool { return len(im.Sites)+len(im.Rebindings) > 0 }

// Witness is where something is written in it, and what, of an image that is patched. is says which sites are written; ok is false where none is,
// nor any slot.
func (im *Image) Witness(is func(*stub.Patch) bool) (addr uint64, bytes []byte, ok bool) {
	for i := len(im.Sites) - 1; i >= 0; i-- {
		if site := &im.Sites[i]; is(site) {
			return site.Addr, site.New(), true
		}
	}
	if n := len(im.Rebindings); n > 0 {
		b := &im.Rebindings[n-1]
		return b.Slot, binary.LittleEndian.AppendUint64(nil, b.Stub), true
	}
	return 0, nil, false
}

// HasSites says whether any of its sites, or of its slots that are written, is in place. is says which sites are written: where none is, nor any
// slot, nothing speaks against it.
func (im *Image) HasSites(p *process.Process, is func(*stub.Patch) bool) (bool, error) {
	written := len(im.Rebindings)
	var buf [stub.MaxPatch]byte
	for i := len(im.Sites) - 1; i >= 0; i-- {
		site := &im.Sites[i]
		if !is(site) {
			continue
		}
		written++
		b := buf[:len(site.New())]
		if _, err := p.ReadAt(b, site.Addr); err != nil {
			return false, err
		}
		if string(b) == string(site.New()) {
			return true, nil
		}
	}
	for i := range im.Rebindings {
		var b [8]byte
		if _, err := p.ReadAt(b[:], im.Rebindings[i].Slot); err != nil {
			return false, err
		}
		if binary.LittleEndian.Uint64(b[:]) == im.Rebindings[i].Stub {
			return true, nil
		}
	}
	return written == 0, nil
}
