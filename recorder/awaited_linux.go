package recorder

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/target"
)

// await says what the recording waits for where globs have matched nothing: they may be for libraries that are loaded later. traced says
// whether others have matched. The error is that of the first glob that can't come to match, or that is more likely misspelt.
func (r *recording) await(ch *chooser, traced bool) error {
	missed := ch.missed()
	if len(missed) == 0 {
		return r.captures.Check(ch.sample)
	}
	if !loadsLibraries(r.s.Process, r.s.SearchedImages) {
		return missed[0].told()
	}
	for i := range missed {
		if m := &missed[i]; !traced && glob.Misspelt(m.glob, m.names) && !(m.flag == "-m" && isBeside(r.s.Process, r.s.SearchedImages, m.glob)) {
			return missed[0].told()
		}
	}
	if err := r.captures.Check(ch.sample); err != nil {
		return err
	}
	for i := range missed {
		text := missed[i].told().Error()
		if missed[i].flag == "-m" {
			r.notice("%s; waiting for a library of that name to be loaded", text)
		} else {
			r.notice("%s; waiting for a library to be loaded that has such a function", text)
		}
	}
	return nil
}

// loadsLibraries says whether a process can load libraries: whether an image imports what does that.
func loadsLibraries(p *process.Process, maps []process.Mapping) bool {
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

// isBeside says whether a file of that name is in a directory that the process has a file of mapped.
func isBeside(p *process.Process, maps []process.Mapping, name string) bool {
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
