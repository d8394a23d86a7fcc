package mapped

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// NameByDebugFile gives functions that an image has no symbols for the names that its separate debug file has, where that is
// installed. It names only: what a function's code is has been decided by the image itself.
func NameByDebugFile(im *object.Image, module string, plan []plan.Function) {
	unnamed := map[uint64]int{}
	prefix := module + "+0x"
	for i := range plan {
		if f := &plan[i]; f.Found != 0 || strings.HasPrefix(f.Name, prefix) {
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
	names := map[int][]object.Symbol{}
	err = debug.VisitSymbols(func(s *object.Symbol) bool {
		if i, ok := unnamed[s.Addr]; ok && s.Defined() && s.IsFunc() && s.Name != "" {
			kept := *s
			kept.Name = strings.Clone(s.Name)
			names[i] = append(names[i], kept)
		}
		return true
	})
	if err != nil {
		return // names are not needed
	}
	for i, all := range names {
		slices.SortFunc(all, func(a, b object.Symbol) int {
			return cmp.Or(cmp.Compare(nameRank(&a), nameRank(&b)), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		})
		var known []string
		for _, s := range all {
			if !slices.Contains(known, s.Name) {
				known = append(known, s.Name)
			}
		}
		plan[i].SetNames(known)
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
