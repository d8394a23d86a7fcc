package recorder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/probe"
)

// debugNames gives functions that an image has no symbols for the names that its separate debug file has, where that is
// installed. It names only: what a function's code is has been decided by the image itself.
func debugNames(im *object.Image, module string, plan []probe.Function) {
	unnamed := map[uint64]int{}
	for i := range plan {
		if f := &plan[i]; f.Name == fmt.Sprintf("%s+%#x", module, f.Addr) {
			unnamed[f.Addr] = i
		}
	}
	if len(unnamed) == 0 {
		return
	}
	debug, err := new(object.DebugSearch).Debug(im)
	if err != nil {
		return // there is none, as mostly
	}
	defer debug.Close()
	symbols, err := debug.Symbols()
	if err != nil {
		return // names are not needed
	}
	names := map[int][]*object.Symbol{}
	for k := range symbols {
		s := &symbols[k]
		if i, ok := unnamed[s.Addr]; ok && s.Defined() && s.IsFunc() && s.Name != "" {
			names[i] = append(names[i], s)
		}
	}
	for i, all := range names {
		slices.SortFunc(all, func(a, b *object.Symbol) int {
			return cmp.Or(cmp.Compare(nameRank(a), nameRank(b)), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		})
		f := &plan[i]
		f.Name = all[0].Name
		for _, s := range all[1:] {
			if s.Name != f.Name && !slices.Contains(f.Aliases, s.Name) {
				f.Aliases = append(f.Aliases, s.Name)
			}
		}
	}
}

// nameRank is lower for the better of two names of one address: fewer leading underscores, and global.
func nameRank(s *object.Symbol) int {
	rank := 2 * (len(s.Name) - len(strings.TrimLeft(s.Name, "_")))
	if s.Binding == object.Local {
		rank++
	}
	return rank
}
