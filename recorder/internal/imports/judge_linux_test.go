package imports

import (
	"testing"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
)

// A process with a program, a preloaded library, two that it needs and one that was loaded later.
func made() (r *Process, images map[string]*Image) {
	images = map[string]*Image{}
	r = &Process{name: map[string]*Image{}}
	for i, name := range []string{"program", "preloaded", "first", "second", "plugin"} {
		im := &Image{Module: name, Slide: 0x1000_0000 * uint64(i+1), dev: 1, inode: uint64(i + 1), listed: true, startup: name != "plugin",
			Object: &object.Image{Format: object.ELF}, named: true, defs: map[string][]definition{}}
		im.Lo, im.Hi = im.Slide, im.Slide+0x10000
		r.Images = append(r.Images, im)
		r.maps = append(r.maps, process.Mapping{Start: im.Lo, End: im.Hi, Dev: 1, Inode: im.inode, Path: "/" + name, Perm: process.PermRead | process.PermExec})
		images[name] = im
	}
	r.maps = append(r.maps, process.Mapping{Start: 0x7000_0000_0000, End: 0x7000_0000_1000, Special: "[vdso]", Perm: process.PermRead | process.PermExec},
		process.Mapping{Start: 0x7000_1000_0000, End: 0x7000_1000_1000, Perm: process.PermRead | process.PermExec})
	needs := func(name string, others ...string) {
		im := images[name]
		im.closure = []*Image{im}
		for _, o := range others {
			im.closure = append(im.closure, images[o])
		}
	}
	needs("program", "first", "second")
	needs("preloaded")
	needs("first", "second")
	needs("second")
	needs("plugin", "second")
	for name, list := range map[string]map[string]definition{
		"program":   {"allocate": {addr: 0x500, kind: object.Func}, "taken": {addr: 0x40, kind: canonical}},
		"preloaded": {"send": {addr: 0x100, kind: object.Func}},
		"first":     {"send": {addr: 0x200, kind: object.Func}, "old": {addr: 0x210, version: "V1", kind: object.Func}},
		"second": {"send": {addr: 0x300, kind: object.Func}, "old": {addr: 0x310, version: "V2", kind: object.Func},
			"allocate": {addr: 0x320, kind: object.Func}, "copy": {addr: 0x330, kind: object.IFunc}, "taken": {addr: 0x340, kind: object.Func}},
		"plugin": {"only": {addr: 0x400, kind: object.Func}},
	} {
		for symbol, d := range list {
			images[name].defs[symbol] = []definition{d}
		}
	}
	images["program"].plt = []object.Range{{Start: 0x1000, End: 0x1100}}
	return r, images
}

func TestVerdictsFollowTheLinkersRules(t *testing.T) {
	for what, c := range map[string]struct {
		image, symbol, version string
		kind                   object.SlotKind
		weak                   bool
		to                     string // image, and
		off                    uint64
		value                  uint64 // or this
		want                   Verdict
	}{
		"its definition":                               {image: "program", symbol: "old", version: "V1", to: "first", off: 0x210, want: Bound},
		"that of the version":                          {image: "program", symbol: "old", version: "V2", to: "second", off: 0x310, want: Bound},
		"another version":                              {image: "program", symbol: "old", version: "V2", to: "first", off: 0x210, want: Rebound},
		"the preloaded one":                            {image: "program", symbol: "send", to: "preloaded", off: 0x100, want: Interposed},
		"past the preloaded one":                       {image: "program", symbol: "send", to: "first", off: 0x200, want: Rebound},
		"the program's own allocator":                  {image: "second", symbol: "allocate", to: "program", off: 0x500, want: Interposed},
		"what a plugin needs itself (RTLD_DEEPBIND)":   {image: "plugin", symbol: "allocate", to: "second", off: 0x320, want: Bound},
		"the middle of a function":                     {image: "program", symbol: "old", version: "V1", to: "first", off: 0x214, want: Rebound},
		"anonymous memory":                             {image: "program", symbol: "send", value: 0x7000_1000_0010, want: Rebound},
		"nowhere":                                      {image: "program", symbol: "send", value: 0x10, want: Rebound},
		"the PLT":                                      {image: "program", symbol: "send", to: "program", off: 0x1016, want: Lazy},
		"the PLT, of what is loaded":                   {image: "program", symbol: "send", kind: object.SlotData, to: "program", off: 0x1016, want: Rebound},
		"what a resolver chose":                        {image: "program", symbol: "copy", to: "second", off: 0x999, want: Bound},
		"what a resolver chose of the kernel's":        {image: "program", symbol: "copy", value: 0x7000_0000_0040, want: Bound},
		"what no resolver chooses":                     {image: "program", symbol: "copy", to: "first", off: 0x10, want: Rebound},
		"a weak one of nobody's":                       {image: "program", symbol: "nobody", weak: true, want: Undefined},
		"not yet":                                      {image: "program", symbol: "send", want: Unrelocated},
		"a later library's (RTLD_GLOBAL)":              {image: "plugin", symbol: "only", to: "plugin", off: 0x400, want: Bound},
		"the program's PLT entry for a function":       {image: "second", symbol: "taken", kind: object.SlotData, to: "program", off: 0x40, want: Interposed},
		"the program's PLT entry, but to be jumped by": {image: "first", symbol: "taken", to: "program", off: 0x40, want: Rebound},
	} {
		r, images := made()
		s := Slot{Image: images[c.image], Value: c.value}
		s.Kind, s.Symbol = c.kind, object.Symbol{Name: c.symbol, Version: c.version, Kind: object.Func, Binding: object.Global}
		if c.weak {
			s.Symbol.Binding = object.Weak
		}
		if c.to != "" {
			s.Value = images[c.to].Slide + c.off
		}
		if r.judge(&s); s.Verdict != c.want {
			t.Errorf("%s: %s, want %s", what, s.Verdict, c.want)
		}
	}
}
