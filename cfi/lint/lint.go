package lint

import (
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// Result is what Check found.
type Result struct {
	Findings []Finding // in the order of their addresses
	Section  string    // the section that was read: ".eh_frame" or ".debug_frame"
	FDEs     int
	// CodeFollowed says whether the rows were checked against the code, which is so for x86-64 and arm64.
	CodeFollowed bool
	// Synchronous says that the rows leave out epilogues throughout, as those of compilers do that were not asked for
	// asynchronous unwind tables; on arm64 prologues, too. They are exact at calls only, which is no error: no WrongEpilogue is
	// among the findings.
	Synchronous bool
}

// Check compares an image's call frame information with its code. The image must stay open until Check returns. The
// error is for information that is missing (cfi.ErrNone, cfi.ErrNotLinked) or cannot be read at all; damage inside is among the findings.
func Check(im *object.Image) (*Result, error) {
	if im.Type == object.Relocatable {
		return nil, fmt.Errorf("cfi: %s: %w", im.Name(), cfi.ErrNotLinked)
	}
	table, hdr, err := read(im)
	if err != nil {
		return nil, err
	}
	return check(im, table, hdr)
}

// read reads the tables.
func read(im *object.Image) (*cfi.Table, cfi.Section, error) {
	opt := cfi.Options{ByteOrder: im.ByteOrder, AddrSize: im.Class.AddrSize(), Name: im.Name(), Take: im.Take}
	data, addr, err := im.EHFrame()
	if err != nil {
		return nil, cfi.Section{}, err
	}
	if len(data) > 0 {
		var hdr cfi.Section
		if hdr.Data, hdr.Addr, err = im.EHFrameHdr(); err != nil {
			return nil, hdr, err
		}
		table, err := cfi.ParseEHFrame(data, addr, opt)
		return table, hdr, err
	}
	for _, name := range []string{".debug_frame", ".zdebug_frame"} {
		s := im.Section(name)
		if s == nil {
			continue
		}
		if data, err = im.SectionData(s); err != nil {
			return nil, cfi.Section{}, err
		}
		if len(data) > 0 {
			table, err := cfi.ParseDebugFrame(data, 0, opt)
			return table, cfi.Section{}, err
		}
	}
	return nil, cfi.Section{}, fmt.Errorf("cfi: %s: %w", im.Name(), cfi.ErrNone)
}

// check compares tables, which need not be those of the image, with the image's code.
func check(im *object.Image, table *cfi.Table, hdr cfi.Section) (*Result, error) {
	const fdeCost = 1 << 10 // of memory for each: what is noted and found of a function
	if err := im.Take(uint64(len(table.FDEs()))*fdeCost, "a check of so many FDEs"); err != nil {
		return nil, err
	}
	l := newLinter(im, table)
	l.result.Section, l.result.FDEs = table.Section(), len(l.fdes)
	symbols, err := im.FunctionSymbols()
	if err != nil && len(symbols) == 0 {
		return nil, err
	}
	l.symbols = symbols
	l.readRows()
	l.structure(hdr)
	if p := processorOf(im.Arch); p != nil {
		l.result.CodeFollowed = true
		l.code(p)
	}
	for k := range l.result.Findings {
		f := &l.result.Findings[k]
		if f.Function == "" {
			f.Function = l.functionAt(f.Address)
		}
	}
	sortFindings(l.result.Findings)
	return &l.result, nil
}

// budgets returns how many bytes of language-specific data may be read, and how many rules kept: what a file of this size
// can honestly need, and more.
func budgets(im *object.Image) (lsda, rules int) {
	const least, most = 1 << 20, 1 << 30
	size := int(min(im.Size(), most))
	return least + size, least + 2*size
}

// linter is one check.
type linter struct {
	im      *object.Image
	table   *cfi.Table
	fdes    []cfi.FDE
	first   []row // by FDE: its first row, an empty one where the program cannot be read; all rows at once take much memory
	symbols []object.Symbol
	plts    []object.Range
	compact *cfi.CompactTable // of Mach-O, else nil
	names   cfi.NameFunc
	// How much may still be read and kept: tables that share their bytes could cost more than the file is large.
	lsdaBudget, rulesBudget int

	evaluator cfi.Evaluator
	result    Result
}

func newLinter(im *object.Image, table *cfi.Table) *linter {
	l := &linter{im: im, table: table, fdes: table.FDEs(), plts: im.PLTRanges()}
	l.lsdaBudget, l.rulesBudget = budgets(im)
	if regs, ok := cfi.RegistersOf(im.Arch); ok {
		l.names = regs.Name
	}
	if info, err := cfi.ReadImage(im); err == nil {
		l.compact = info.Compact
	}
	return l
}

func (l *linter) add(f Finding) { l.result.Findings = append(l.result.Findings, f) }

// functionAt returns the name of the function that covers an address: where no symbol has one, the address at which the FDE
// begins, as cfi step names functions; "" where there is none.
func (l *linter) functionAt(addr uint64) string {
	k := sort.Search(len(l.symbols), func(k int) bool { return l.symbols[k].Addr > addr }) - 1
	const near = 16 // symbols with the same start, or inside one another
	for last := max(-1, k-near); k > last; k-- {
		if s := &l.symbols[k]; addr-s.Addr < s.Size {
			return s.Name
		}
	}
	if f, ok := l.table.Find(addr); ok {
		return fmt.Sprintf("%#x", f.Start)
	}
	return ""
}

// code follows the code of all functions, several at a time.
func (l *linter) code(p *processor) {
	functions := l.functions(p)
	var next atomic.Int64
	var group sync.WaitGroup
	var lock sync.Mutex
	var rets tally
	for range min(runtime.GOMAXPROCS(0), len(functions)) {
		group.Go(func() {
			k := checker{read: l.im.ReadAddr, described: func(addr uint64) bool { return !l.executable(addr) || l.described(addr) }, symbolsEnd: l.symbolsEnd, follows: l.follows}
			var m cfi.Machine
			var list []Finding
			for {
				n := int(next.Add(1)) - 1
				if n >= len(functions) {
					break
				}
				l.fill(&m, functions[n])
				list = append(list, k.check(functions[n])...)
				functions[n] = nil
			}
			lock.Lock()
			defer lock.Unlock()
			l.result.Findings = append(l.result.Findings, list...)
			rets.right += k.rets.right
			rets.late += k.rets.late
		})
	}
	group.Wait()
	l.result.Synchronous = rets.late >= minLate && rets.late > 2*rets.right
	kept := l.result.Findings[:0]
	for _, f := range l.result.Findings {
		if l.result.Synchronous && (f.Kind == WrongEpilogue || f.Kind == wrongPrologue) {
			continue
		}
		if f.Kind == wrongPrologue {
			f.Kind = WrongCFA
		}
		kept = append(kept, f)
	}
	l.result.Findings = kept
}

// fill gives the parts of a function their rows. That they can be read, and how many they are, is known from before.
func (l *linter) fill(m *cfi.Machine, f *function) {
	for k := range f.parts {
		_, rules := budgets(l.im)
		f.parts[k].rows, _ = rowsOf(m, &l.fdes[f.parts[k].fde], &rules)
	}
}

// minLate is how many returns with the row of the body make a habit.
const minLate = 4

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
