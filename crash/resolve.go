package crash

import (
	"context"
	"errors"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// Options says where images and symbols are looked for. The zero value uses the images' own
// paths, checked by their IDs, and names nothing.
type Options struct {
	// Symbols names code; nil leaves the names that the report has.
	Symbols symbolize.Source
	// DebugDirs are folders with images and debug files: DIR/NAME, DIR/.build-id/ab/cdef…, and
	// dSYM bundles.
	DebugDirs []string
	// Fetcher fetches the images that stacks need by their IDs; nil for none.
	Fetcher symbols.Fetcher
	// Memory bounds what the images' files may make us keep of them; nil means an allowance of
	// its own.
	Memory *object.Allowance
	// MaxFrames bounds the frames of one thread; 0 means 65,536.
	MaxFrames int
}

// Resolve walks the stacks of a report that holds memory, and names all of them. It is called
// once. The error is ctx's; what could not be done is told in Problems and in each stack's end.
func (r *Report) Resolve(ctx context.Context, o Options) error {
	if o.Memory == nil {
		o.Memory = object.NewAllowance(0)
	}
	if o.MaxFrames <= 0 {
		o.MaxFrames = 1 << 16
	}
	files := &files{Options: o, report: r}
	for _, im := range r.Images {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		files.look(im)
	}
	if err := r.walkAll(ctx, files); err != nil {
		return err
	}
	for _, t := range r.Threads {
		for k := range t.Frames {
			if im := t.Frames[k].Image; im != nil {
				im.Used = true
			}
		}
	}
	n := &namer{report: r, source: o.Symbols, files: files}
	if err := n.all(ctx); err != nil {
		return err
	}
	r.disassemble()
	return ctx.Err()
}

// errNoID is why a file that may be another one is not used.
var errNoID = errors.New("the report has no ID of it, and the file at its path may be another one")
