package markers

import (
	"context"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// How is how an argument is read: "constant", "register", "memory" by the stub itself, or "read", by a system call. Reason is why it can't be.
// Variable and Type are the source's, as far as debug information has them.
type How struct{ How, Reason, Variable, Type string }

// HowRead says of each note how its arguments are read. Files finds debug information, as of arguments.Open.
func HowRead(ctx context.Context, im *object.Image, files arguments.Files, slide uint64, notes []sdt.Note) [][]How {
	all := make([]*sdt.Note, len(notes))
	for i := range notes {
		all[i] = &notes[i]
	}
	p, types := newPlacer(im, slide, all), newTyper(ctx, im, files)
	defer types.close()
	out := make([][]How, len(notes))
	for i := range notes {
		for k := range notes[i].Arguments {
			o, constant, err := p.operand(&notes[i].Arguments[k])
			how := howOf(&o, constant, err)
			switch {
			case notes[i].Arguments[k].Length != "" && how.Reason == "": // of Go: those that aren't constants are
				how.How = "read"
			case notes[i].Arguments[k].Name == "" && err == nil && !constant:
				if v, ok := types.variable(notes[i].Addr, o, slide); ok {
					how.Variable, how.Type = v.Name, v.Type
				}
			}
			out[i] = append(out[i], how)
		}
	}
	return out
}

func howOf(o *stub.Operand, constant bool, err error) How {
	switch {
	case err != nil:
		return How{Reason: err.Error()}
	case constant:
		return How{How: "constant"}
	case o.Memory && o.Safe:
		return How{How: "memory"}
	case o.Memory:
		return How{How: "read"}
	}
	return How{How: "register"}
}
