package process

import (
	"slices"
	"strings"
)

// byPreference returns the code mappings in the order in which to search them:
// first those that nobody patches, the vdso and the loader, then the C library,
// then the rest. Code in anonymous memory may vanish and is left out, and so may a recorder's stubs.
func byPreference(maps []Mapping) []Mapping {
	rank := func(m Mapping) int {
		base := m.Path[strings.LastIndexByte(m.Path, '/')+1:]
		switch {
		case m.Special == "[vdso]":
			return 0
		case strings.HasPrefix(base, "ld-"):
			return 1
		case strings.HasPrefix(base, "libc.") || strings.HasPrefix(base, "libc-"):
			return 2
		}
		return 3
	}
	var out []Mapping
	for _, m := range maps {
		if m.Perm&PermExec != 0 && m.Perm&PermWrite == 0 && (m.Path != "" && m.Inode != 0 || m.Special == "[vdso]") && !m.IsRecorders() {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b Mapping) int { return rank(a) - rank(b) })
	return out
}
