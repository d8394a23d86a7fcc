package mapped

import (
	"os"
	"slices"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Image is an image of the process that may be probed.
type Image struct {
	Path       string // as the process sees it
	Module     string
	Object     *object.Image
	Probe      *plan.Image
	Plan       []plan.Function
	Slide      uint64
	Lo, Hi     uint64 // addresses it occupies
	Text       []process.Mapping
	Unloadable bool        // it may be unloaded
	shared     *sharedPlan // whose file it has, nil if that is its own
	plans      *PlanCache
	Gone       bool // it has been
	// Attempts are how often it was tried to probe it again after it had gone; File is for that.
	Attempts int
	File     os.FileInfo
	Main     bool // it is the program, and no library
	// DebugFiles are where its debug file may be.
	DebugFiles DebugFiles
	// Unchosen says that none of its functions is traced: it is there for its hooks.
	Unchosen bool
	// Traced are its functions that are recorded, their IDs from First on, until an arena has them; Hooked are those that
	// only have a hook.
	Traced, Hooked []stub.Probe
	// Notes are its markers, if any of them is wanted, Marks their places, one for each, and Marked those that are recorded by themselves, until
	// an arena has them. HasMarks says that there are any, or such that functions' stubs write.
	Notes    []sdt.Note
	Marks    []plan.Mark
	Marked   []stub.Probe
	HasMarks bool
	// Returns are the places that calls by slots return to, and Imports the functions that are recorded by slots, until an arena has them, their
	// IDs from FirstImport on. HasImports says that there are any.
	Returns     []plan.Mark
	Imports     []stub.Probe
	FirstImport uint32
	HasImports  bool
	// Renewals is how often the same file has been planned anew since it came again and has imports.
	Renewals int
	// Semaphores are the addresses, in the target, of those of its markers that are recorded, each once.
	Semaphores []uint64
	First      uint32
	// Islands and Sites are its patches, once the code that they lead to is made.
	Islands, Sites []stub.Patch
	// Rebindings are its slots that lead to stubs, once their code is made.
	Rebindings []stub.Rebinding
	// differed are the addresses of text that wasn't the file's when we came.
	differed map[uint64]bool
}

// IsThere says whether its text is where it was when it was opened.
func (im *Image) IsThere(maps []process.Mapping) bool {
	return !slices.ContainsFunc(im.Text, func(m process.Mapping) bool { return !process.SameMapping(im.Text, maps, m.Start) })
}

// Close lets go of the file.
func (im *Image) Close() {
	switch {
	case im.shared == nil:
		im.Object.Close()
	case im.plans != nil: // once
		im.plans.release(im.shared)
		im.plans = nil
	}
}

// IsBack says whether an image that was gone is mapped again, byte for byte where it was.
func (im *Image) IsBack(p *process.Process, m *process.Mapping, maps []process.Mapping) bool {
	if im.Path != m.Path || !slices.ContainsFunc(im.Text, func(t process.Mapping) bool { return PlaceOf(&t) == PlaceOf(m) }) || !im.IsThere(maps) {
		return false
	}
	path, err := p.ExeFile(*m)
	if err != nil {
		return false
	}
	is, err := os.Stat(path)
	if err != nil || !os.SameFile(is, im.File) || !is.ModTime().Equal(im.File.ModTime()) || is.Size() != im.File.Size() {
		return false
	}
	same, err := im.VerifyText(p)
	return err == nil && same
}

// IsCode says whether a mapping may be the text of an image. A recorder's stubs, which may be private, too, are none.
func IsCode(m *process.Mapping) bool {
	return m.Inode != 0 && m.Perm&process.PermExec != 0 && m.Perm&process.PermShared == 0 && m.Path != "" && !m.IsRecorders()
}

// PlaceOf is the place of a mapping.
func PlaceOf(m *process.Mapping) Place { return Place{m.Start, m.Offset, m.Dev, m.Inode, m.Path} }

// LoaderOf is the image that has the loader's function that gets a hook, nil if there is none.
func LoaderOf(images []*Image) *Image {
	for _, im := range images {
		for i := range im.Plan {
			if im.Plan[i].Hook == plan.HookLoader {
				return im
			}
		}
	}
	return nil
}

// Place is where a file is mapped, and which.
type Place struct {
	start, offset, dev, inode uint64
	path                      string
}
