package libraries

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/target"
)

// CanLoad says whether a process can load libraries: whether an image imports what does that.
func CanLoad(p *process.Process, maps []process.Mapping) bool {
	seen := map[target.FileID]bool{}
	for i := range maps {
		m := &maps[i]
		id := target.FileID{Dev: m.Dev, Inode: m.Inode}
		if !mapped.IsCode(m) || seen[id] {
			continue
		}
		seen[id] = true
		if path, err := p.ExeFile(*m); err == nil && importsDlopen(path) {
			return true
		}
	}
	return false
}

// importsDlopen says whether a file has dlopen or dlmopen of another image.
func importsDlopen(path string) bool {
	o, err := object.Open(path)
	if err != nil {
		return false
	}
	defer o.Close()
	found := false
	err = o.VisitSymbols(func(s *object.Symbol) bool {
		found = (s.Name == "dlopen" || s.Name == "dlmopen") && !s.Defined()
		return !found
	})
	return found && err == nil
}

// IsBeside says whether a file of that name is in a directory that the process has a file of mapped.
func IsBeside(p *process.Process, maps []process.Mapping, name string) bool {
	if name == "." || name == ".." || strings.Contains(name, "/") {
		return false
	}
	seen := map[string]bool{}
	return slices.ContainsFunc(maps, func(m process.Mapping) bool {
		dir := filepath.Dir(m.Path)
		if !mapped.IsCode(&m) || seen[dir] {
			return false
		}
		seen[dir] = true
		return p.HasFile(filepath.Join(dir, name))
	})
}
