package sampler

import (
	"sync"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// goNames names the functions of a Go program by its runtime's own table, which stripping leaves.
type goNames struct {
	once  sync.Once
	table *pclntab.Table // nil if it is no Go program, or its table can't be read
}

// find returns the function at a link address, with its line; false when there is none.
func (g *goNames) find(file *object.Image, link uint64) (Call, bool) {
	g.once.Do(func() { g.table, _ = pclntab.Open(file) }) // without it there are no names
	if g.table == nil {
		return Call{}, false
	}
	f, ok := g.table.Find(link)
	if !ok {
		return Call{}, false
	}
	name := string(g.table.Name(f.Name))
	at, line := g.table.LineAt(f, link)
	return Call{Function: name, Linkage: name, File: string(g.table.File(at)), Line: line}, name != ""
}
