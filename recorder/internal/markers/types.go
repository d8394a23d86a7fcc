package markers

import (
	"context"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// mostDebug is of how much .debug_info, in bytes, types are looked up: notes tell of arguments without it, and more takes long.
const mostDebug = 128 << 20

// typer looks up what debug information says of arguments: the note says only where one is and how large, and what variable is there then is
// what it is.
type typer struct {
	ctx    context.Context
	im     *object.Image
	files  arguments.Files
	opened bool
	debug  *arguments.Debug // nil without debug information
	frames *cfi.Info        // nil without call frame information
}

func newTyper(ctx context.Context, im *object.Image, files arguments.Files) *typer {
	return &typer{ctx: ctx, im: im, files: files}
}

// open looks for debug information. What can't be read leaves arguments as notes tell of them.
func (t *typer) open() {
	if t.opened {
		return
	}
	t.opened = true
	if s := t.im.Section(".debug_info"); s != nil && s.Size > mostDebug {
		return
	}
	var err error
	if t.debug, err = arguments.Open(t.ctx, t.im, t.files); err != nil {
		t.debug = nil
		return
	}
	if t.frames, err = cfi.ReadImage(t.im); err != nil {
		t.frames = nil
	}
}

func (t *typer) close() {
	if t.debug != nil {
		t.debug.Close()
	}
}

// variable is the one that an argument of a site is, at a link address; slide is what is added to addresses in the operand.
func (t *typer) variable(site uint64, o stub.Operand, slide uint64) (v arguments.Variable, ok bool) {
	if t.open(); t.debug == nil {
		return v, false
	}
	if o.Origin == stub.OriginAddress {
		o.Addr -= slide
	}
	var frame arguments.Frame
	if t.frames != nil {
		var m cfi.Machine
		if row, _, err := t.frames.RowAt(&m, site); err == nil && row.CFA.Kind == cfi.RegOffset {
			frame = arguments.Frame{Reg: row.CFA.Reg, Off: row.CFA.Offset, Known: true}
		}
	}
	return t.debug.Variable(site, &o, frame)
}

// typed gives an argument what its variable says of it: its type, and how it is read, if that is as large.
func typed(a *reel.Argument, o *stub.Operand, v *arguments.Variable) {
	if v.Size > int64(o.Size) {
		return // a part of it
	}
	switch v.Kind {
	case arguments.KindInt:
		a.Kind, o.Signed = reel.ArgumentInt, true
	case arguments.KindUint:
		a.Kind, o.Signed = reel.ArgumentUint, false
	case arguments.KindBool:
		a.Kind, o.Signed = reel.ArgumentBool, false
	case arguments.KindChar:
		a.Kind, o.Signed = reel.ArgumentChar, false
	case arguments.KindEnum:
		a.Kind, a.Names, o.Signed = reel.ArgumentEnum, v.Enum, v.Signed
	case arguments.KindPointer, arguments.KindReference:
		a.Kind, o.Signed = reel.ArgumentPointer, false
	case arguments.KindFloat:
		if v.Size != int64(o.Size) {
			return
		}
		a.Kind = reel.ArgumentFloat
		if v.Size == 4 {
			a.Kind = reel.ArgumentFloat32
		}
	default:
		return
	}
	a.Type = v.Type
}
