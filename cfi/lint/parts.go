package lint

import (
	"slices"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// functions puts the FDEs together that jump into each other: the hot and cold parts of a function, and code that is
// shared. Each comes back with its code and rows.
func (l *linter) functions(pr *processor) []*function {
	parts := make([]part, len(l.fdes))
	called := l.exported()
	owner := make([]int32, len(l.fdes))
	type leap struct {
		from int
		to   uint64
	}
	var jumps []leap
	var reach uint64
	for k := range l.fdes {
		owner[k] = int32(k)
		p := &parts[k]
		// Code is followed once, however many FDEs describe it.
		if l.fdes[k].Start < reach || !l.load(k, p) {
			continue
		}
		reach = p.end
		pr.sweep(p, func(in *inst) {
			if in.way == call {
				called = append(called, in.target)
			} else if in.target < p.start || in.target >= p.end {
				jumps = append(jumps, leap{k, in.target})
			}
		})
	}
	slices.Sort(called)
	for k := range parts {
		l.enter(pr, &parts[k], called)
	}
	for _, j := range jumps {
		f, ok := l.table.Find(j.to)
		if !ok {
			continue
		}
		to := l.indexOf(f)
		if p := &parts[to]; p.code != nil && !l.inPLT(p.start) && (f.Start != j.to || !p.abiEntry) {
			union(owner, int32(j.from), int32(to))
		}
	}
	return group(pr, parts, owner)
}

// indexOf returns the index of one of the table's FDEs.
func (l *linter) indexOf(f *cfi.FDE) int {
	k, _ := slices.BinarySearchFunc(l.fdes, f, func(a cfi.FDE, b *cfi.FDE) int {
		switch {
		case a.Start < b.Start || a.Start == b.Start && a.Offset < b.Offset:
			return -1
		case a.Offset == b.Offset:
			return 0
		}
		return 1
	})
	return k
}

// load fills in a part; false when it has no code or no rows, or is a signal handler's frame, whose truth is made by the
// kernel.
func (l *linter) load(k int, p *part) bool {
	f := &l.fdes[k]
	if f.CIE.SignalFrame || f.Start >= f.End || l.first[k].End == l.first[k].Start || !l.executable(f.Start) {
		return false
	}
	code, err := l.im.ReadAddr(f.Start, f.End-f.Start)
	if err != nil {
		return false
	}
	*p = part{start: f.Start, end: f.End, code: code, fde: k, bKey: f.CIE.BKey}
	if f.LSDA != 0 {
		p.sites = callSites(f.LSDA, f.Start, l.im.ReadAddr, &l.lsdaBudget)
	}
	return true
}

// enter decides whether calls enter a part at its start: its first row says so, or a call leads there, or its symbol is
// for other images to call.
func (l *linter) enter(pr *processor, p *part, called []uint64) {
	if p.code == nil {
		return
	}
	if r := l.pltAt(p.start); r != nil && l.im.Format == object.ELF {
		p.plt = pr.lazyPLT && r.Name == ".plt"
		p.stubs, p.abiEntry = !p.plt, true
		return
	}
	first := &l.first[p.fde]
	_, found := slices.BinarySearch(called, p.start)
	p.abiEntry = found || first.Start == p.start && pr.entersByCall(first) && !l.beginsBehindPadding(pr, p, first)
}

// beginsBehindPadding says whether an FDE begins with padding that belongs to nothing: a nop stands before a landing pad that
// would begin a part of a function, since its offset would be 0, which means none; and before a function that was aligned
// within its FDE another row begins.
func (l *linter) beginsBehindPadding(pr *processor, p *part, first *row) bool {
	var in inst
	if pr.decode(&in, p.code, p.start) && in.nop && uint64(in.size) == pr.minLen && l.fdes[p.fde].LSDA != 0 {
		return true
	}
	off := uint64(0)
	for off < uint64(len(p.code)) && pr.decode(&in, p.code[off:], p.start+off) && in.padding {
		off += uint64(in.size)
	}
	return off > 0 && first.End == p.start+off && off < uint64(len(p.code))
}

// pltAt returns the section of jump stubs that holds an address. A jump there is a tail call.
func (l *linter) pltAt(addr uint64) *object.Range {
	for k := range l.plts {
		if r := &l.plts[k]; addr >= r.Start && addr < r.End {
			return r
		}
	}
	return nil
}

func (l *linter) inPLT(addr uint64) bool { return l.pltAt(addr) != nil }

// exported lists the addresses of functions that other images may call.
func (l *linter) exported() []uint64 {
	var list []uint64
	for k := range l.symbols {
		if s := &l.symbols[k]; s.Dynamic && s.Binding != object.Local {
			list = append(list, s.Addr)
		}
	}
	return list
}

// sweep calls yield for the direct calls and jumps in a part, decoded one after the other.
func (pr *processor) sweep(p *part, yield func(in *inst)) {
	var in inst
	for off := uint64(0); off < uint64(len(p.code)); {
		if !pr.decode(&in, p.code[off:], p.start+off) {
			off += pr.minLen
			continue
		}
		if in.direct {
			yield(&in)
		}
		off += uint64(in.size)
	}
}

// union joins two sets of FDEs.
func union(owner []int32, a, b int32) {
	a, b = find(owner, a), find(owner, b)
	if a != b {
		owner[max(a, b)] = min(a, b)
	}
}

// find returns the first FDE of a set, and shortens the way to it.
func find(owner []int32, k int32) int32 {
	for owner[k] != k {
		owner[k] = owner[owner[k]]
		k = owner[k]
	}
	return k
}

// group makes a function of each set.
func group(pr *processor, parts []part, owner []int32) []*function {
	functions := make(map[int32]*function, len(parts))
	var list []*function
	for k := range parts {
		if parts[k].code == nil {
			continue
		}
		first := find(owner, int32(k))
		f := functions[first]
		if f == nil {
			f = &function{p: pr}
			functions[first] = f
			list = append(list, f)
		}
		f.parts = append(f.parts, parts[k])
	}
	for _, f := range list {
		f.sortParts()
	}
	return list
}
