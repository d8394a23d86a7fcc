package sampler

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/callreel/callreel/dwarf"
	"github.com/callreel/callreel/object"
)

// definitionNames tells by what name a function was defined. Symbol tables have several
// for one, and versions of them: C libraries define a function by an inner name, and
// all others are aliases. Debuggers show the name of the definition.
type definitionNames struct {
	file      *object.Image // whose symbols have all names
	debug     *object.Image // nil when there is none
	own       bool          // debug is not the image's own file
	names     nameTable
	dirs      []string
	wasRead   bool
	functions []definition // sorted by start
}

// definition is a range of a function's code.
type definition struct {
	start, end uint64
	entry      uint64 // of the function
	name       string
}

// maxDefinitions bounds the debug information that is read only for this, bytes. Where
// there is more, the symbols' names have to do.
const maxDefinitions = 64 << 20

// newDefinitionNames finds an image's debug information.
func newDefinitionNames(file *object.Image, dirs []string) *definitionNames {
	d := &definitionNames{file: file, debug: file, dirs: dirs}
	if file.Section(".debug_info") != nil {
		return d
	}
	search := object.DebugSearch{Dirs: dirs}
	if d.debug, _ = search.Debug(file); d.debug != nil {
		d.file, d.own = d.debug, true
	}
	return d
}

func (d *definitionNames) close() error {
	if d.own {
		return d.debug.Close()
	}
	return nil
}

// name returns the name of the function at a link address, given the one that a symbol
// map has and the address where it begins.
func (d *definitionNames) name(ctx context.Context, link, start uint64, name string) string {
	plain, _, _ := strings.Cut(name, "@")
	switch {
	case isMangled(name):
		return name
	case plain == name && !isClone(name) && d.names.only(d.file, start) == plain:
		return name
	}
	best, begins := d.names.find(d.file, link)
	if f := d.function(ctx, link); f != nil && (best == "" || begins <= f.entry) {
		return f.name
	}
	if best != "" {
		return best
	}
	return plain
}

// isMangled says whether a name is one that a compiler has made of another.
func isMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "$s") || strings.HasPrefix(name, "_D")
}

// isClone says whether a name is that of a part or a variant that a compiler has made of
// a function.
func isClone(name string) bool {
	for _, mark := range [...]string{".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".localalias", ".abi0"} {
		if strings.Contains(name, mark) {
			return true
		}
	}
	return false
}

// function returns the definition of the function at an address, nil for none.
func (d *definitionNames) function(ctx context.Context, link uint64) *definition {
	if !d.wasRead {
		d.wasRead = true
		d.read(ctx)
	}
	k := sort.Search(len(d.functions), func(k int) bool { return d.functions[k].start > link })
	if k == 0 || link >= d.functions[k-1].end {
		return nil
	}
	return &d.functions[k-1]
}

// read lists the functions. What is damaged is left out.
func (d *definitionNames) read(ctx context.Context) {
	if d.debug == nil {
		return
	}
	if s := d.debug.Section(".debug_info"); s == nil || s.FileSize > maxDefinitions {
		return
	}
	search := object.DebugSearch{Dirs: d.dirs}
	alt, _ := search.Alt(d.debug) // names that are there are missing without it
	if alt != nil {
		defer alt.Close() // only read from
	}
	data, err := dwarf.Open(ctx, d.debug, dwarf.Options{Alt: alt})
	if err != nil {
		return
	}
	defer data.Close() // only read from
	// What a file that changes meanwhile has given is as good as that of a damaged one.
	_ = object.CatchFaults(func() error {
		d.readUnits(ctx, data)
		return nil
	})
	slices.SortStableFunc(d.functions, func(a, b definition) int { return cmp.Compare(a.start, b.start) })
}

func (d *definitionNames) readUnits(ctx context.Context, data *dwarf.Data) {
	var c dwarf.Contents
	units := data.Units()
	for k := range units {
		if ctx.Err() != nil {
			return
		}
		_ = data.Read(&units[k], &c) // c holds what is not damaged
		for _, f := range c.Functions {
			ranges := c.Ranges[f.Ranges.First:][:f.Ranges.Count]
			name := string(data.Bytes(f.Name))
			if name == "" {
				continue
			}
			for _, r := range ranges {
				d.functions = append(d.functions, definition{r.Low, r.High, ranges[0].Low, name})
			}
		}
	}
}
