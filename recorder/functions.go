package recorder

import (
	"context"
	"path/filepath"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// Function is one function of a process or file and how it would be probed.
type Function struct {
	Name    string
	Module  string
	Address uint64 // link address for a file, load address for a process
	Size    uint64
	Tier    string // empty if it isn't probed
	Reason  string // why not
	// Found is by what it was found in the code, where neither symbols nor call frame information tell of it: call, pointer or
	// shape; else empty.
	Found string
}

// Coverage is how much of an image's code belongs to functions that are known, in bytes.
type Coverage struct {
	Module string
	Main   bool   // it is the program itself
	Text   uint64 // all of its code
	Known  uint64 // of functions that symbols or call frame information tell of
	Found  uint64 // of functions that were found in the code besides
}

// Share is the part of the code that belongs to functions, 0 to 1; 1 if there is none.
func (c *Coverage) Share() float64 {
	if c.Text == 0 {
		return 1
	}
	return float64(c.Known+c.Found) / float64(c.Text)
}

// Small says that so little of the program's own code belongs to functions that a recording shows little of what it does.
func (c *Coverage) Small() bool { return c.Main && c.Share() < 0.5 }

// Listing is the functions that were asked for, and the images that were looked at.
type Listing struct {
	Functions []Function
	Images    []Coverage
}

func coverageOf(im *plan.Image, module string, main bool) Coverage {
	return Coverage{module, main, im.Coverage.Text, im.Coverage.Known, im.Coverage.Found}
}

// FunctionsOf lists the functions of an ELF file on disk, on any machine.
func FunctionsOf(ctx context.Context, path string, c Choice) (*Listing, error) {
	ch := choose.New(c.rules())
	o, err := object.Opener{Memory: object.NewAllowance(c.Memory)}.Open(path)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	module := filepath.Base(path)
	im, err := plan.NewImage(o, module)
	if err != nil {
		return nil, err
	}
	im.Loader, im.NoSearch = mapped.IsLoader(o), c.NoFound
	planned, err := im.Plan(ctx)
	if err != nil {
		return nil, err
	}
	files := c.debugFiles()
	if ch.Module(module) {
		files.Fetch(ctx, o, false)
	}
	mapped.NameByDebugFile(files, o, module, planned)
	mapped.RefuseGo(im.Go, planned)
	out := &Listing{}
	if ch.Module(module) {
		out.Images = append(out.Images, coverageOf(im, module, o.Type == object.Executable || o.Interp() != ""))
		for i := range planned {
			f := &planned[i]
			if ch.Function(f.Names(), f.Size) {
				out.Functions = append(out.Functions, listed(f, module, 0))
			}
		}
	}
	return out, ch.Check()
}

func listed(f *plan.Function, module string, slide uint64) Function {
	return Function{Name: f.Name, Module: module, Address: f.Addr + slide, Size: f.Size, Tier: f.Tier.String(), Reason: f.Reason.String(), Found: f.Found.String()}
}

// GoProgram says whether an ELF file is a Go program, and if so why it can't be recorded, nil if it can.
func GoProgram(path string) (isGo bool, why error) {
	o, err := object.Open(path)
	if err != nil {
		return false, nil
	}
	defer o.Close()
	g := golang.Read(o)
	if g == nil {
		return false, nil
	}
	return true, g.Unsupported
}
