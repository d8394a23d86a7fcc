package object

// A Range is a named range of link addresses, End excluded.
type Range struct {
	Name       string
	Start, End uint64
}

// PLTRanges returns the sections that hold the linker's own jump stubs: .plt,
// .plt.got, .plt.sec and .iplt; __stubs and its kin in Mach-O files. They are known by section only, so an image
// without section headers has none.
func (i *Image) PLTRanges() []Range {
	var ranges []Range
	for k := range i.sections {
		s := &i.sections[k]
		switch s.Name {
		case ".plt", ".plt.got", ".plt.sec", ".iplt",
			"__stubs", "__stub_helper", "__auth_stubs", "__objc_stubs", "__picsymbolstub1", "__symbol_stub":
			if s.Alloc() && s.Size <= ^uint64(0)-s.Addr {
				ranges = append(ranges, Range{s.Name, s.Addr, s.Addr + s.Size})
			}
		}
	}
	return ranges
}
