package sampler

import (
	"context"

	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// Options says how stacks are taken. The zero value is usable.
type Options struct {
	// Symbolizer names code; nil means the symbol tables of the images.
	Symbolizer Symbolizer
	// NoNames leaves out names: the frames are addresses, images and offsets.
	NoNames bool
	// MaxFrames bounds the frames of one thread; 0 means unwind.DefaultMaxFrames.
	MaxFrames int
	// Memory bounds what the files of the process may make us keep of them; nil means
	// an allowance of its own with the limit of object.DefaultMemory.
	Memory *object.Allowance
	// Original is unwind.Options.Original.
	Original func(*unwind.Registers) bool
}

// A Preparer is a Symbolizer that can get ahead what it needs of images.
type Preparer interface {
	Symbolizer
	// Prepare is called before threads are stopped, which it may delay by minutes; ctx ends it.
	Prepare(ctx context.Context, images []*Image)
}

// prepare lets the Symbolizer get ahead what it needs. It says whether that may have taken long.
func (o *Options) prepare(ctx context.Context, images []*Image) bool {
	p, ok := o.Symbolizer.(Preparer)
	if !ok || o.NoNames {
		return false
	}
	p.Prepare(ctx, images)
	return true
}

// allow makes sure that there is an allowance.
func (o *Options) allow() {
	if o.Memory == nil {
		o.Memory = object.NewAllowance(0)
	}
}

func (o *Options) walker(arch *unwind.Arch, s *space) *unwind.Walker {
	return unwind.NewWalker(arch, s.code(), unwind.Options{MaxFrames: o.MaxFrames, Original: o.Original})
}

// maxFrames bounds the frames of all threads of a capture: some hundred megabytes. A
// hostile process may give each of its threads a stack that never ends.
const maxFrames = 1 << 21

// within cuts a walk that would go beyond the bound of its capture.
func within(budget *int, walked []unwind.Frame, end unwind.End) ([]unwind.Frame, unwind.End) {
	const least = 64 // of each thread
	if most := max(*budget, least); len(walked) > most {
		walked = walked[:most]
		end = unwind.End{Reason: unwind.TooDeep, Addr: walked[most-1].SP}
	}
	*budget -= len(walked)
	return walked, end
}

// frames makes a thread's frames of a walk's.
func (s *space) frames(walked []unwind.Frame, o *Options) []Frame {
	symbolizer := o.Symbolizer
	if symbolizer == nil {
		symbolizer = new(TableNames)
	}
	out := make([]Frame, 0, len(walked))
	named := map[unwind.Frame][2]int{} // by what decides on names: where they are in out
	for k := range walked {
		w := &walked[k]
		f := Frame{Address: w.PC, SP: w.SP, By: w.By, Flags: w.Flags}
		key := unwind.Frame{PC: w.PC, Flags: w.Flags & (unwind.Exact | unwind.SignalFrame)}
		if was, ok := named[key]; ok { // a recursion
			for _, f := range out[was[0]:was[1]] {
				f.SP, f.By, f.Flags = w.SP, w.By, w.Flags
				out = append(out, f)
			}
			continue
		}
		// A signal trampoline is found by its first byte, which the handler returns to.
		at := w.CodeAddr()
		if w.Has(unwind.SignalFrame) {
			at = w.PC
		}
		f.Image = s.image(at)
		if f.Image != nil {
			f.Offset = f.Address - f.Image.Load
		}
		if f.Image == nil || !f.Image.ready() {
			if !o.NoNames {
				f.Function = s.jit.find(at)
				f.Linkage = f.Function
			}
			named[key] = [2]int{len(out), len(out) + 1}
			out = append(out, f)
			continue
		}
		if o.NoNames {
			out = append(out, f)
			continue
		}
		before := len(out)
		for _, c := range symbolizer.Calls(f.Image, at-f.Image.Slide()) {
			f.Function, f.Linkage, f.File, f.Line, f.Inlined = c.Function, c.Linkage, c.File, c.Line, c.Inlined
			out = append(out, f)
		}
		if len(out) == before {
			out = append(out, f)
		}
		named[key] = [2]int{before, len(out)}
	}
	return slices.Clip(out)
}
