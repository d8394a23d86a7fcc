package mapped

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// DebugFiles is recorder.DebugFiles.
type DebugFiles interface {
	Fetch(ctx context.Context, im *object.Image, types bool)
	Lacks(im *object.Image, types bool) bool
	Debug(im *object.Image) (*object.Image, error)
	Alt(debug *object.Image) (*object.Image, error)
	Names(im *object.Image) (name func(addr uint64) string, done func())
}

// NameByDebugFile gives functions that an image has no symbols for the names that its separate debug file has, or the map of its symbols.
// Those of an image without a symbol table whose names begin with underscores get better ones, if there are: such names are mostly what a
// library calls its functions for others. It names only: what a function's code is has been decided by the image itself.
func NameByDebugFile(files DebugFiles, im *object.Image, module string, plan []plan.Function) {
	prefix := module + "+0x"
	isNamed := func(i int) bool { f := &plan[i]; return f.Found == 0 && !strings.HasPrefix(f.Name, prefix) }
	whole := im.Section(".symtab") != nil
	wanted := map[uint64]int{}
	for i := range plan {
		if !isNamed(i) || !whole && underscores(plan[i].Name) > 0 {
			wanted[plan[i].Addr] = i
		}
	}
	if len(wanted) == 0 || files == nil {
		return
	}
	for i, names := range namesOf(files, im, wanted) {
		switch {
		case !isNamed(i):
			plan[i].SetNames(names)
		case underscores(names[0]) < underscores(plan[i].Name):
			for _, own := range plan[i].Names() {
				if !slices.Contains(names, own) {
					names = append(names, own)
				}
			}
			plan[i].SetNames(names)
		}
	}
}

// namesOf returns the names of functions, the best first, for those of the addresses that have any.
func namesOf(files DebugFiles, im *object.Image, wanted map[uint64]int) map[int][]string {
	debug, err := files.Debug(im)
	if err != nil { // there is none, as mostly
		return mapNames(files, im, wanted)
	}
	defer debug.Close()
	found := map[int][]object.Symbol{}
	err = debug.VisitSymbols(func(s *object.Symbol) bool {
		if i, ok := wanted[s.Addr]; ok && s.Defined() && s.IsFunc() && s.Name != "" {
			kept := *s
			kept.Name = strings.Clone(s.Name)
			found[i] = append(found[i], kept)
		}
		return true
	})
	if err != nil {
		return nil // names are not needed
	}
	names := map[int][]string{}
	for i, all := range found {
		slices.SortFunc(all, func(a, b object.Symbol) int {
			return cmp.Or(cmp.Compare(nameRank(&a), nameRank(&b)), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		})
		for _, s := range all {
			if !slices.Contains(names[i], s.Name) {
				names[i] = append(names[i], s.Name)
			}
		}
	}
	return names
}

// mapNames are the names that the map of the image's symbols has, one for a function.
func mapNames(files DebugFiles, im *object.Image, wanted map[uint64]int) map[int][]string {
	name, done := files.Names(im)
	defer done()
	if name == nil {
		return nil
	}
	names := map[int][]string{}
	for addr, i := range wanted {
		if n := name(addr); n != "" {
			names[i] = []string{n}
		}
	}
	return names
}

// nameRank is lower for the better of two names of one address: fewer leading underscores, and global.
func nameRank(s *object.Symbol) int {
	rank := 2 * underscores(s.Name)
	if s.Binding == object.Local {
		rank++
	}
	return rank
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }
