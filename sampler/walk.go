package sampler

import (
	"slices"

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
	// Original is unwind.Options.Original.
	Original func(*unwind.Registers) bool
}

func (o *Options) walker(arch *unwind.Arch, s *space) *unwind.Walker {
	return unwind.NewWalker(arch, s.mapped, unwind.Options{MaxFrames: o.MaxFrames, Original: o.Original})
}

// frames makes a thread's frames of a walk's.
func (s *space) frames(walked []unwind.Frame, o *Options) []Frame {
	symbolizer := o.Symbolizer
	if symbolizer == nil {
		symbolizer = new(TableNames)
	}
	out := make([]Frame, 0, len(walked))
	for k := range walked {
		w := &walked[k]
		f := Frame{Address: w.PC, SP: w.SP, By: w.By, Flags: w.Flags}
		// A signal trampoline is found by its first byte, which the handler returns to.
		at := w.CodeAddr()
		if w.Has(unwind.SignalFrame) {
			at = w.PC
		}
		if f.Image = s.image(at); f.Image == nil {
			out = append(out, f)
			continue
		}
		f.Offset = f.Address - f.Image.Load
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
	}
	return slices.Clip(out)
}
