package viewer

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// names knows the functions of a recording by their names.
type names struct {
	recording *recording

	mu    sync.Mutex
	of    *reel.File // whose functions are in the list
	list  []named
	calls map[uint32]uint64          // by ID
	globs map[string]map[uint32]bool // what some texts have matched
}

// named is a function by its name.
type named struct {
	id     uint32
	name   string // demangled
	folded string // in lower case, for searches
	module string
}

// maxGlobs is how many searches are kept: a page steps through what it has found with the same one.
const maxGlobs = 8

func newNames(r *recording) *names { return &names{recording: r, globs: map[string]map[uint32]bool{}} }

// all returns every function of the reel's table. Demangling them takes a second or two for a million.
func (n *names) all() []named {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.upToDate()
}

func (n *names) upToDate() []named {
	f := n.recording.File()
	if f == n.of {
		return n.list
	}
	last := uint32(0)
	if len(n.list) > 0 {
		last = n.list[len(n.list)-1].id
	}
	clear(n.globs)
	f.Functions(func(id uint32, fn reel.Function) bool {
		if id > last { // IDs are given in order, and a table only grows
			name := demangle.Name(fn.Name)
			n.list = append(n.list, named{id, name, strings.ToLower(name), moduleOf(f, fn.Image)})
		}
		return true
	})
	n.of, n.calls = f, nil
	return n.list
}

// counted returns how often each function was called, by its ID.
func (n *names) counted(tl *timeline.Timeline) map[uint32]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.upToDate()
	if n.calls == nil {
		n.calls = tl.Calls()
	}
	return n.calls
}

// matching returns the IDs of the functions that a text finds.
func (n *names) matching(text string) map[uint32]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.upToDate()
	if found, ok := n.globs[text]; ok {
		return found
	}
	found := map[uint32]bool{}
	match := newMatcher(text)
	for i := range list {
		if match(list[i].folded) {
			found[list[i].id] = true
		}
	}
	if len(n.globs) >= maxGlobs {
		clear(n.globs)
	}
	n.globs[text] = found
	return found
}

// newMatcher returns what says whether a name in lower case is found by a text: as a glob over the whole of it if the text has
// * or ?, else anywhere in it.
func newMatcher(text string) func(folded string) bool {
	text = strings.ToLower(text)
	if strings.ContainsAny(text, "*?") {
		return func(folded string) bool { return glob.Match(text, folded) }
	}
	return func(folded string) bool { return strings.Contains(folded, text) }
}

// nameJSON is a function as api/names has it.
type nameJSON struct {
	Name    string `json:"name"`
	Linkage string `json:"linkage_name"`
	Module  string `json:"module"`
	Address string `json:"address,omitempty"` // link address
	File    string `json:"file,omitempty"`
	Line    uint32 `json:"line,omitempty"`
	// NameFrom says who knew the name if not the recorder.
	NameFrom string `json:"name_from,omitempty"`
	// Pending says that file and line may be known later.
	Pending bool `json:"pending,omitempty"`
}

// namesOf is api/names: what functions are called and where they are.
func (r *recording) namesOf(w http.ResponseWriter, q *query) error {
	ids := q.list("ids", maxNames)
	if q.err != nil {
		return q.err
	}
	f := r.File()
	naming := newNaming(f)
	answer := make(map[string]nameJSON, len(ids))
	for _, id := range ids {
		fn, known := f.Function(id)
		var n nameJSON
		n.Name, n.Module = naming.of(id)
		n.Linkage, _ = naming.given(id, fn.Name, "")
		if known {
			n.Address = "0x" + strconv.FormatUint(fn.Addr, 16)
			known, _ := f.Naming(id)
			n.File, n.Line, n.NameFrom = cut(known.File, maxName), known.Line, known.From.String()
			if n.File == "" {
				n.File, n.Line, n.Pending = r.sources.find(f, &fn)
			}
		}
		answer[strconv.FormatUint(uint64(id), 10)] = n
	}
	return writeJSON(w, answer)
}

// foundJSON is a function as api/find has it.
type foundJSON struct {
	ID     uint32 `json:"id"`
	Name   string `json:"name"`
	Module string `json:"module"`
	Calls  uint64 `json:"calls"`
}

// Limits of api/find.
const (
	defaultFound = 100
	mostFound    = 5000
)

// find is api/find: the functions that were called and that a text finds, by their calls.
func (r *recording) find(w http.ResponseWriter, q *query) error {
	text, limit := q.text("q"), q.integer("limit", defaultFound, 0, mostFound)
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	calls := r.names.counted(tl)
	found := r.names.matching(text)
	answer := struct {
		Functions []foundJSON `json:"functions"`
		Matches   int         `json:"matches"`
		Calls     uint64      `json:"calls"`
	}{Functions: []foundJSON{}}
	var list []foundJSON
	naming := newNaming(tl.File())
	for _, n := range r.names.all() {
		if found[n.id] && calls[n.id] > 0 {
			answer.Calls += calls[n.id]
			list = append(list, foundJSON{n.id, n.name, n.module, calls[n.id]})
		}
	}
	answer.Matches = len(list)
	slices.SortStableFunc(list, func(a, b foundJSON) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(len(a.Name), len(b.Name)))
	})
	for _, f := range list[:min(limit, len(list))] {
		f.Name, f.Module = naming.given(f.ID, f.Name, f.Module)
		answer.Functions = append(answer.Functions, f)
	}
	return writeJSON(w, answer)
}
