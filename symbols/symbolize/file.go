package symbolize

import (
	"bytes"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// describe adds to a module what its file says: where it is linked to, which parts are
// loaded, where signal trampolines are. The image must stay open as long as the module.
func (m *Module) describe(im *object.Image) {
	m.Base = im.BaseAddr()
	m.Segments = []FileRange{}
	for _, s := range im.Segments() {
		if s.Type == object.SegmentLoad && s.FileSize > 0 {
			m.Segments = append(m.Segments, FileRange{Addr: s.Addr, Off: s.Off, Size: s.FileSize})
		}
	}
	m.Signals = trampolines(im)
	m.Symbol = exported(im)
}

// trampolines finds code that signal handlers return to by its CFI: its CIE's augmentation
// has an S (LSB Core 5.0 §10.6.1.1.1, as GNU extended it).
func trampolines(im *object.Image) func(link uint64) bool {
	data, addr, err := im.EHFrame()
	if err != nil {
		return nil
	}
	// Few images have any, and large ones have a million records: looked for as text first.
	for _, augmentation := range []string{"zRS\x00", "zS\x00", "zRSB\x00", "zPLRS\x00"} {
		if bytes.Contains(data, []byte(augmentation)) {
			return signalFrames(im, data, addr)
		}
	}
	return nil
}

func signalFrames(im *object.Image, data []byte, addr uint64) func(link uint64) bool {
	table, err := cfi.ParseEHFrame(data, addr, cfi.Options{ByteOrder: im.ByteOrder, AddrSize: im.Class.AddrSize(), Name: im.Name(), Take: im.Take})
	if err != nil {
		return nil
	}
	return func(link uint64) bool {
		f, ok := table.Find(link)
		return ok && f.CIE.SignalFrame
	}
}

// exported finds the functions that an image shows to others, which are those that
// backtrace_symbols names. A name that stands for two places is none.
func exported(im *object.Image) func(name string) (uint64, bool) {
	var places map[string]uint64
	return func(name string) (uint64, bool) {
		if places == nil {
			places = map[string]uint64{}
			list, _ := im.Symbols() // what a damaged table has still counts
			for k := range list {
				s := &list[k]
				if !s.Dynamic || !s.IsFunc() {
					continue
				}
				if at, there := places[s.Name]; there && at != s.Addr {
					places[s.Name] = 0
				} else {
					places[s.Name] = s.Addr
				}
			}
		}
		at := places[name]
		return at, at != 0
	}
}

// Describe makes the description of an image that is loaded at its link address.
func Describe(im *object.Image) *Image {
	i := &Image{ID: im.ID(), Path: im.Name(), Load: im.BaseAddr()}
	if im.Format == object.MachO {
		i.Arch = im.ArchName()
	}
	for _, s := range im.Segments() {
		if s.Type != object.SegmentLoad || s.MemSize == 0 {
			continue
		}
		if end := s.Addr + s.MemSize; end > i.Load && end-i.Load > i.Size {
			i.Size = end - i.Load
		}
	}
	return i
}
