package mapped

import (
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// IsLoader says whether an image is the dynamic loader: it defines the loader's state.
func IsLoader(o *object.Image) bool {
	if o.Interp() != "" || o.Type != object.Shared {
		return false
	}
	loader := false
	err := o.VisitSymbols(func(s *object.Symbol) bool {
		// glibc's; musl's loader is the C library itself, and is probed as such.
		loader = s.Name == "_rtld_global" && s.Defined()
		return !loader
	})
	return loader && err == nil
}

// RefuseGo refuses the functions of a Go program that can't be probed.
func RefuseGo(g *golang.Program, planned []plan.Function) {
	if g == nil || g.Unsupported == nil {
		return
	}
	for i := range planned {
		planned[i].Refuse(plan.GoReason(g), 0)
	}
}

// Search says which images of a process are wanted, and how they are planned.
type Search struct {
	Chosen  func(names ...string) bool // says of a module's names whether it is wanted; called by one goroutine only
	Hooks   bool                       // images that define a function that gets a hook are wanted, too
	Follow  bool                       // such a function is also one that replaces programs
	NoFound bool                       // functions that were found in the code are omitted
	Plans   *PlanCache                 // nil to plan each file anew
	Memory  *object.Allowance          // for what is kept of files
	// Notes returns those of the markers of a file that are to be planned, none if none is wanted; nil for that in any case. It is called by
	// several goroutines.
	Notes func(notes []sdt.Note) []sdt.Note
	// MarksOnly says that no functions are wanted, but those with hooks.
	MarksOnly bool
	// DebugFiles are where names are that images lack.
	DebugFiles DebugFiles
}
