package symbols

// Functions yields the ranges of code that have a name, by rising address: link
// addresses, end excluded, and the linkage name, which aliases the map. A function of
// several ranges comes once for each. It stops when yield returns false, and leaves
// out what is damaged.
func (m *Map) Functions(yield func(start, end uint64, name string) bool) {
	var start, end uint64
	var name string
	open := false
	next := uint64(0) // a damaged region must not list the blocks of others again
	for n := range len(m.regions) / regionSize {
		r := decodeRegion(m.regions, n)
		last := min(uint64(r.first)+uint64(r.count), m.blockCount)
		for k := max(next, uint64(r.first)); k < last; k++ {
			next = k + 1
			var b block
			if !b.open(m.blocks, m.place(k), uint(m.head.calleeBits)) {
				continue
			}
			at := r.base + m.start(k)
			if open && b.back > 0 && at-b.back == start && at == end {
				end = at + b.extent
				continue
			}
			if open && !yield(start, end, name) {
				return
			}
			c, _ := m.callee(b.callee(m.blocks, 0, uint(m.head.calleeBits)))
			start, end, name, open = at, at+b.extent, m.nameOf(c), true
		}
	}
	if open {
		yield(start, end, name)
	}
}

// Files yields the paths of the source files that code comes from, each once, until yield returns false.
func (m *Map) Files(yield func(path string) bool) {
	for k := range uint64(len(m.files)) / fileSize {
		var f Frame
		if f.Dir, f.Base = m.file(k); f.Base == "" && f.Dir == "" {
			continue
		}
		if !yield(f.File()) {
			return
		}
	}
}
