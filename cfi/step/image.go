package step

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// image is a file that is mapped into the process as code.
type image struct {
	object *object.Image
	info   *cfi.Info // nil where there is none
	module string
	slide  uint64 // load address minus link address

	symbols   []object.Symbol
	linkage   []object.Range
	starts    []uint64             // link addresses at which functions begin, sorted
	functions map[uint64]*function // the chosen ones by link address

	machine cfi.Machine
	rows    map[uint64]*cfi.Row // by the link address at which they begin
	errs    map[uint64]error    // why there is none, by link address
	marks   map[uint64]*mark    // by link address of the instruction
	code    map[uint64]inst
}

// function is a chosen function.
type function struct {
	image    *image
	name     string
	addr     uint64 // link address
	followed bool
}

// openImage opens a mapped file.
func openImage(path, module string, memory *object.Allowance) (*image, error) {
	o, err := object.Opener{Memory: memory}.Open(path)
	if err != nil {
		return nil, err
	}
	im := &image{
		object: o, module: module, functions: map[uint64]*function{}, rows: map[uint64]*cfi.Row{}, errs: map[uint64]error{},
		marks: map[uint64]*mark{}, code: map[uint64]inst{}, linkage: o.PLTRanges(),
	}
	if o.Format != object.ELF || o.Arch != architecture {
		o.Close()
		return nil, fmt.Errorf("cfi: %s: %s code is not stepped, only %s ELF", o.Name(), o.Arch, architecture)
	}
	if im.info, err = cfi.ReadImage(o); err != nil {
		im.info = nil // every chosen function will be found to have no call frame information
	}
	if im.symbols, err = o.FunctionSymbols(); err != nil && len(im.symbols) == 0 && im.info == nil {
		o.Close()
		return nil, err
	}
	return im, nil
}

// choose chooses functions by symbols, and those that only an FDE tells of.
func (im *image) choose(chosen func(string) bool) {
	for k := range im.symbols {
		s := &im.symbols[k]
		im.starts = append(im.starts, s.Addr)
		// Control comes to a cold part in the middle of a call.
		if s.Name != "" && !strings.Contains(s.Name, ".cold") && !im.isLinkage(s.Addr) {
			im.add(s.Name, s.Addr, chosen)
		}
	}
	if im.info == nil || im.info.EHFrame == nil {
		return
	}
	for _, f := range im.info.EHFrame.FDEs() {
		if im.symbolAt(f.Start) != nil || im.isLinkage(f.Start) {
			continue
		}
		// A part of a function has another CFA where it begins.
		if row, err := im.row(f.Start); err == nil && row.CFA.Kind == cfi.RegOffset && row.CFA.Reg == dwarfSP && row.CFA.Offset == entryCFA {
			im.starts = append(im.starts, f.Start)
			im.add(fmt.Sprintf("%#x", f.Start), f.Start, chosen)
		}
	}
	slices.Sort(im.starts)
	im.starts = slices.Compact(im.starts)
}

func (im *image) add(name string, addr uint64, chosen func(string) bool) {
	// All names are asked for, since it is to be known which globs match none.
	if code, err := im.object.ReadAddr(addr, 1); err == nil && len(code) == 1 && (chosen == nil || chosen(name)) && im.functions[addr] == nil {
		im.functions[addr] = &function{image: im, name: name, addr: addr}
	}
}

// symbolAt returns the symbol that covers a link address, nil where there is none.
func (im *image) symbolAt(addr uint64) *object.Symbol {
	k := sort.Search(len(im.symbols), func(k int) bool { return im.symbols[k].Addr > addr }) - 1
	const near = 16 // symbols with the same start, or inside one another
	for last := max(-1, k-near); k > last; k-- {
		if s := &im.symbols[k]; addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

func (im *image) nameAt(addr uint64) string {
	if s := im.symbolAt(addr); s != nil {
		return s.Name
	}
	if im.info != nil && im.info.EHFrame != nil {
		if f, ok := im.info.EHFrame.Find(addr); ok {
			return fmt.Sprintf("%#x", f.Start) // as choose names it
		}
	}
	return ""
}

// isLinkage says whether a link address is in a procedure linkage table.
func (im *image) isLinkage(addr uint64) bool {
	for k := range im.linkage {
		if r := &im.linkage[k]; addr >= r.Start && addr < r.End {
			return true
		}
	}
	return false
}

// begins says whether a function begins at a link address.
func (im *image) begins(addr uint64) bool {
	_, found := slices.BinarySearch(im.starts, addr)
	return found
}

// partOf returns where the function that covers a link address begins, as far as is known.
func (im *image) partOf(addr uint64) uint64 {
	k := sort.Search(len(im.starts), func(k int) bool { return im.starts[k] > addr }) - 1
	if k < 0 {
		return 0
	}
	return im.starts[k]
}

// row returns the row of a link address; it stays valid.
func (im *image) row(addr uint64) (*cfi.Row, error) {
	if im.info == nil {
		return nil, cfi.ErrNone
	}
	if err := im.errs[addr]; err != nil {
		return nil, err
	}
	row, _, err := im.info.RowAt(&im.machine, addr)
	if err != nil {
		im.errs[addr] = err
		return nil, err
	}
	kept := im.rows[row.Start]
	if kept == nil || kept.End != row.End {
		clone := row.Clone()
		kept = &clone
		im.rows[row.Start] = kept
	}
	return kept, nil
}

// moduleOf is the name that a file is chosen by.
func moduleOf(path string) string { return filepath.Base(path) }
