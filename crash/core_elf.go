package crash

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/isa/i386"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/sampler/corefile"
	"github.com/callreel/callreel/unwind"
)

// ELFCore is a core file of Linux.
const ELFCore Format = "elf-core"

// readELFCore reads a core by package corefile.
func readELFCore(open func() (*corefile.File, error)) (*Report, error) {
	f, err := open()
	switch {
	case errors.Is(err, corefile.ErrNotCore):
		return nil, fmt.Errorf("crash: %w: %w", ErrUnknownFormat, err)
	case err != nil:
		return nil, fmt.Errorf("crash: %w", err)
	}
	r := &Report{Format: ELFCore, OS: "linux", Arch: f.Arch.String(), arch: f.Arch, Process: Process{PID: f.Process.PID, Name: f.Process.Name}}
	r.memory = &coreMemory{f}
	r.closers = append(r.closers, f)
	r.Problems = append(r.Problems, f.Problems()...)
	for _, m := range f.Maps {
		r.maps = append(r.maps, mapping{Range{m.Start, m.End}, m.Exec, m.Write})
	}
	r.coreImages(f)
	for k := range f.Threads {
		r.Threads = append(r.Threads, coreThread(f.Arch, &f.Threads[k]))
	}
	first := &f.Threads[0] // the one that the signal was for
	if first.Signal == 0 { // as gcore writes it
		r.Reason.Text = "no signal: the core was written of a running process"
		return r, nil
	}
	r.Threads[0].Crashed = true
	r.Reason = Reason{Signal: linuxSignals[uint32(first.Signal)]}
	if first.Info.Known && first.Info.Signal == first.Signal {
		r.Reason = signalReason(uint32(first.Signal), int32(first.Info.Code), first.Info.Addr)
	}
	if r.Reason.Signal == "" {
		r.Reason.Signal = fmt.Sprintf("signal %d", first.Signal)
	}
	r.Reason.text()
	return r, nil
}

// coreThread makes a thread of a core's.
func coreThread(a *unwind.Arch, from *corefile.Thread) *Thread {
	regs := from.Regs
	t := &Thread{TID: uint64(from.TID), regs: &regs}
	name, count, pc := cfi.NameFunc(nil), 0, "pc"
	switch a {
	case unwind.AMD64:
		name, count, pc = func(n uint32) string { return amd64.DWARFName(int(n)) }, 16, "rip"
	case unwind.I386:
		name, count, pc = func(n uint32) string { return i386.DWARFName(int(n)) }, 8, "eip"
	case unwind.ARM64:
		name, count = func(n uint32) string { return arm64.DWARFName(int(n)) }, 32
	}
	for n := range count {
		if v, ok := regs.Get(n); ok {
			t.Registers = append(t.Registers, Register{name(uint32(n)), v})
		}
	}
	t.Registers = append(t.Registers, Register{pc, regs.PC})
	orderRegisters(t.Registers)
	return t
}

// coreMemory is a core's memory.
type coreMemory struct{ *corefile.File }

// Ranges implements [Memory].
func (m *coreMemory) Ranges() []Range {
	var out []Range
	for k := range m.Maps {
		if p := &m.Maps[k]; p.Size > 0 {
			out = append(out, Range{p.Start, p.Start + p.Size})
		}
	}
	return out
}

// maxVDSO bounds the image of the kernel's own code that is read from memory.
const maxVDSO = 1 << 20

// coreImages makes the images of what files are mapped. A loader maps one file in several pieces
// with rising offsets; a lower offset begins another copy of it. Files without code are data.
func (r *Report) coreImages(f *corefile.File) {
	var current *Image
	var last *corefile.Mapping
	code := false
	keep := func() {
		if current != nil && code && len(r.Images) < maxImages {
			r.Images = append(r.Images, current)
		}
		current, code = nil, false
	}
	for k := range f.Maps {
		m := &f.Maps[k]
		if m.Path == "" {
			if v := f.Auxv.VDSO; v >= m.Start && v < m.End {
				keep()
				r.coreVDSO(f, m)
			} else if im := r.coreUnnamed(f, m); im != nil {
				keep()
				r.Images = append(r.Images, im)
			}
			continue
		}
		if current == nil || m.Path != last.Path || m.Offset < last.Offset {
			keep()
			current = &Image{Path: m.Path, Load: m.Start, offset: m.Offset, page: f.Auxv.PageSize, Arch: r.Arch}
			current.ID, current.byPath = f.ImageID(m.Start), true
		}
		current.Size = m.End - current.Load
		code = code || m.Exec
		last = m
	}
	keep()
	r.sortImages()
	if program := r.image(f.Auxv.Phdr); program != nil && f.Auxv.Phdr != 0 {
		r.Process.Path = program.Path
	}
}

// coreUnnamed returns the image that begins where no file is said to be mapped: emulators, and
// kernels before Linux 3.7, don't say which files are. Its ID tells.
func (r *Report) coreUnnamed(f *corefile.File, m *corefile.Mapping) *Image {
	h, ok := f.ImageHeader(m.Start)
	if !ok || h.ID == "" || m.Start+h.Size < m.Start || len(r.Images) >= maxImages {
		return nil
	}
	im := &Image{ID: h.ID, Load: m.Start, Size: h.Size, Arch: r.Arch}
	if p := f.Auxv.Phdr; p >= m.Start && p < m.Start+h.Size {
		im.Path = r.Process.Name // the program
	}
	for k := range f.Maps {
		if m := &f.Maps[k]; m.Exec && m.Path == "" && m.Start >= im.Load && m.Start < im.end() {
			return im
		}
	}
	return nil
}

// coreVDSO adds the image that has no file but what is in memory.
func (r *Report) coreVDSO(f *corefile.File, m *corefile.Mapping) {
	im := &Image{Path: "[vdso]", Load: m.Start, Size: m.End - m.Start, Arch: r.Arch, opened: true}
	if data := f.Bytes(m.Start, maxVDSO); len(data) > 0 {
		if file, err := object.Parse("[vdso]", append([]byte(nil), data...)); err == nil && file.Type == object.Shared {
			im.ID, im.file, im.Found = file.ID(), file, true
			im.slide = im.Load - file.BaseAddr()
			im.unwind = unwind.NewFileImage(file, im.slide)
		}
	}
	r.Images = append(r.Images, im)
}
