package crash

import (
	"context"
	"errors"
	"fmt"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// namer names the frames of a report.
type namer struct {
	report *Report
	source symbolize.Source
	files  *files
	image  map[imageKey]*Image
}

// imageKey is what symbolize knows an image by.
type imageKey struct{ id, path string }

// Module implements symbolize.Source, and notes of which images there are symbols.
func (n *namer) Module(ctx context.Context, im *symbolize.Image) (*symbolize.Module, error) {
	own := n.image[imageKey{im.ID, im.Path}]
	if n.source == nil {
		return nil, errors.New("no symbols were asked for")
	}
	switch {
	case own != nil && own.file != nil && own.File == "": // the kernel's own code, which is in the report
		return n.inMemory(ctx, own)
	case own != nil && own.ID == "" && own.file == nil:
		return nil, errNoID
	}
	m, err := n.source.Module(ctx, im)
	if err == nil && own != nil {
		own.Found = true
	}
	return m, err
}

// inMemory makes the symbols of an image that a report holds whole.
func (n *namer) inMemory(ctx context.Context, im *Image) (*symbolize.Module, error) {
	m, _, err := symbols.BuildMap(ctx, im.file, symbols.BuildOptions{})
	if err != nil {
		return nil, fmt.Errorf("crash: %s: %w", im.Path, err)
	}
	n.report.closers = append(n.report.closers, m)
	return &symbolize.Module{Map: m, Base: im.file.BaseAddr()}, nil
}

// all names all threads.
func (n *namer) all(ctx context.Context) error {
	n.image = map[imageKey]*Image{}
	for _, im := range n.report.Images {
		s := &symbolize.Image{ID: im.ID, Path: im.Path, Arch: im.Arch, Load: im.Load, Size: im.Size, Offset: im.offset}
		switch {
		case im.File != "":
			s.Path = im.File
		case im.Used && im.ID != "" && n.report.apple():
			if path := n.files.dSYM(im); path != "" {
				s.Path = path
			}
		}
		if im.ID != "" {
			s.Arch = "" // the ID tells which part of a fat file it is
		}
		im.named = s
		n.image[imageKey{s.ID, s.Path}] = im
	}
	symbolizer := symbolize.New(n)
	for _, im := range n.report.Images {
		if !im.Used || im.linked {
			continue
		}
		if err := symbolizer.AddImage(im.named); err != nil {
			n.report.problem("%w", err)
			break
		}
	}
	for _, t := range n.report.Threads {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n.thread(ctx, symbolizer, t)
	}
	return nil
}

// thread names one thread's frames. Where symbols tell which calls were inlined, what the report
// itself says of that place is left out.
func (n *namer) thread(ctx context.Context, s *symbolize.Symbolizer, t *Thread) {
	out := make([]Frame, 0, len(t.Frames))
	var w symbolize.Walk
	var named symbolize.Named
	inlined := 0 // frames at the end of out that the report says are inlined into the next
	for k := range t.Frames {
		f := t.Frames[k]
		if f.Image != nil {
			f.Offset = f.Address - f.Image.Load
			if f.Image.Load == 0 && !f.Image.linked {
				f.Offset = 0
			}
		}
		if f.Inlined {
			out, inlined = append(out, f), inlined+1
			continue
		}
		// Go's runtime makes a fault look as if the faulting instruction had called sigpanic.
		f.Exact = f.Exact || f.By != ByReport && len(out) > 0 && out[len(out)-1].Linkage == "runtime.sigpanic"
		frame := symbolize.Frame{Address: f.Address, Kind: symbolize.Return}
		if f.Exact || f.Signal {
			frame.Kind = symbolize.Exact
		}
		if f.Image != nil && f.Image.linked {
			frame.Place = &symbolize.Place{Path: f.Image.named.Path, ID: f.Image.ID, Offset: f.Address}
		}
		s.Next(ctx, &w, &frame, &named)
		if len(named.Calls) == 0 {
			f.Why = named.Reason
			if f.Function != "" {
				f.Function, f.Linkage, f.Why = demangle.Name(f.Function), f.Function, ""
			}
			out, inlined = append(out, f), 0
			continue
		}
		out, inlined = out[:len(out)-inlined], 0
		for _, c := range named.Calls {
			g := f
			g.Function, g.Linkage, g.File, g.Line, g.Inlined, g.Said = c.Function, c.Linkage, c.File, c.Line, c.Inlined, false
			out = append(out, g)
		}
	}
	t.Frames = out
}
