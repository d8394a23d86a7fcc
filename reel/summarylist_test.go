package reel

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

// counting is a Namer that notes whom it was asked for.
type counting struct {
	mu    sync.Mutex
	asked map[uint64]int // by address
}

func (c *counting) Name(_ *Image, functions []*Function, known []Naming) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, fn := range functions {
		c.asked[fn.Addr]++
		known[i].Name = fmt.Sprintf("f%d", fn.Addr)
	}
}

// Of more functions than are named at once, in two images, those are listed and named that are asked for.
func TestOnlyWhatIsListedIsNamed(t *testing.T) {
	const functions = 3*namedAtOnce + 7
	path := filepath.Join(t.TempDir(), "x.reel")
	w, err := Create(path, Header{Clock: Clock{TicksPerSecond: 1e9}}, Options{})
	must(t, err)
	var images [2]ImageID
	for i := range images {
		images[i], err = w.AddImage(Image{Path: fmt.Sprintf("/lib/%d", i), ID: fmt.Sprintf("c0ffee%02d", i)})
		must(t, err)
	}
	list := make([]Function, functions)
	for i := range list {
		list[i] = Function{Name: fmt.Sprintf("x+0x%x", i), Image: images[i/100%2], Addr: uint64(i), Size: 1}
	}
	_, err = w.AddFunctions(list)
	must(t, err)
	tw, err := w.Thread(Thread{TID: 7})
	must(t, err)
	var events []Event
	now := uint64(1000)
	for i := range functions { // function i is called once and takes (i*37 mod 1000)+1 ns
		id := uint32(i + 1)
		events = append(events, Entry(now, 0x1000, id), Exit(now+uint64(i*37%1000)+1, 0x1000, id))
		now += 2000
	}
	must(t, tw.Append(events))
	must(t, w.Close())
	f, err := Open(path)
	must(t, err)
	defer f.Close()

	all := Summarize(f, SummaryOptions{})
	if len(all.Functions) != functions || all.Unlisted != 0 {
		t.Fatalf("%d functions, %d unlisted", len(all.Functions), all.Unlisted)
	}
	fewest := func(s *FunctionSummary) uint64 { return 1 << 20 / s.Total }
	for name, k := range map[string]struct {
		opt    SummaryOptions
		listed int
		named  int
		first  uint64 // nanoseconds
	}{
		"all":               {SummaryOptions{}, functions, functions, all.Functions[0].Total},
		"the first":         {SummaryOptions{Limit: 5}, 5, 5, all.Functions[0].Total},
		"in another order":  {SummaryOptions{Limit: 5, Order: fewest}, 5, 5, 1},
		"more than are":     {SummaryOptions{Limit: 1 << 20}, functions, functions, all.Functions[0].Total},
		"chosen by name":    {SummaryOptions{Limit: 1, Match: func(n string) bool { return n == "f0" || n == "f1" }}, 1, functions, 38},
		"by several, a lot": {SummaryOptions{Workers: 8}, functions, functions, all.Functions[0].Total},
	} {
		namer := &counting{asked: map[uint64]int{}}
		f.NameBy(namer)
		s := Summarize(f, k.opt)
		if len(s.Functions) != k.listed || len(namer.asked) != k.named || s.Functions[0].Total != k.first {
			t.Fatalf("%s: %d listed, %d named, the first with %d ns", name, len(s.Functions), len(namer.asked), s.Functions[0].Total)
		}
		if k.opt.Match == nil && s.Unlisted != functions-k.listed || k.opt.Match != nil && s.Unlisted != 1 {
			t.Errorf("%s: %d unlisted", name, s.Unlisted)
		}
		for i := range s.Functions {
			fs := &s.Functions[i]
			at := int(fs.ID - 1)
			if fs.Name != fmt.Sprintf("f%d", at) || fs.Module != fmt.Sprint(at/100%2) || fs.Complete != 1 || fs.P50 == 0 || fs.Total != uint64(at*37%1000)+1 {
				t.Fatalf("%s: %+v", name, fs)
			}
		}
	}
	// One by one, and all in their order, they have the same names.
	seen := 0
	for id, fn := range f.Functions {
		one, _ := f.Function(id)
		if fn.Name != fmt.Sprintf("f%d", id-1) || one.Name != fn.Name {
			t.Fatalf("%d: %q, %q", id, fn.Name, one.Name)
		}
		seen++
	}
	if seen != functions {
		t.Errorf("%d functions", seen)
	}
}
