package recorder

import (
	"context"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/choose"
)

// Choice says which functions to take. The globs are those of path.Match, where * also takes slashes and colons; names match as
// the symbol table has them, demangled in full, and demangled without parameters.
type Choice struct {
	Modules   []string // base names of files; empty for all
	Functions []string // empty for all
	Exclude   []string
	MinSize   uint64 // bytes
	// NoFunctions is for recordings of markers alone: no functions are chosen but those that other options ask for by name.
	NoFunctions bool
	// NoFound leaves out functions that neither symbols nor call frame information tell of, and that were found in the code.
	NoFound bool
	// Memory bounds what the files of one process, or one file, may make us keep of them, in bytes: see object.Allowance. 0 is
	// object.DefaultMemory.
	Memory int64
	// DebugFiles finds what tells of images that were stripped: by these names, too, functions are chosen. nil looks beside the images and
	// in the system's folder for debug files, on this machine only.
	DebugFiles DebugFiles
}

// DebugFiles finds the debug files of images, and the names that a symbol map has for them; debugfiles.Files does. What has another ID than
// the image, or describes other code, must never be given for it. It is used by several goroutines at once.
type DebugFiles interface {
	// Fetch fetches from elsewhere what this machine doesn't have and an image needs: names, if it has no symbol table, and with types
	// also debug information. It is called before the process is touched, for the images that are there then and are chosen, and in the
	// background for libraries that are loaded later. Those below are called while threads may be stopped, so they don't ask anybody.
	Fetch(ctx context.Context, im *object.Image, types bool)
	// Lacks says whether Fetch would ask anybody.
	Lacks(im *object.Image, types bool) bool
	// Debug opens the debug file of an image, and Alt the file that dwz has made, which a debug file names; nil, and no error, if it names
	// none. The caller closes them.
	Debug(im *object.Image) (*object.Image, error)
	Alt(debug *object.Image) (*object.Image, error)
	// Names returns what gives the function that begins at a link address its name, "" if it has none; nil if nothing is known besides
	// Debug. done is called at the end, in any case.
	Names(im *object.Image) (name func(addr uint64) string, done func())
}

// localFiles are DebugFiles beside the images and in the system's folder.
type localFiles struct{ object.DebugSearch }

// Fetch implements DebugFiles: there is nobody to ask.
func (*localFiles) Fetch(context.Context, *object.Image, bool) {}

// Lacks implements DebugFiles.
func (*localFiles) Lacks(*object.Image, bool) bool { return false }

// Names implements DebugFiles.
func (*localFiles) Names(*object.Image) (name func(addr uint64) string, done func()) {
	return nil, func() {}
}

// debugFiles are those to be used.
func (c *Choice) debugFiles() DebugFiles {
	if c.DebugFiles == nil {
		return &localFiles{}
	}
	return c.DebugFiles
}

// rules are what it says of modules and functions.
func (c *Choice) rules() choose.Rules {
	return choose.Rules{Modules: c.Modules, Functions: c.Functions, Exclude: c.Exclude, MinSize: c.MinSize, None: c.NoFunctions}
}
