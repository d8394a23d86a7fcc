package markers

import (
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// How is how an argument is read: "constant", "register", "memory" by the stub itself, or "read", by a system call. Reason is why it can't be.
type How struct{ How, Reason string }

// HowRead says of each note how its arguments are read.
func HowRead(im *object.Image, slide uint64, notes []sdt.Note) [][]How {
	all := make([]*sdt.Note, len(notes))
	for i := range notes {
		all[i] = &notes[i]
	}
	p := newPlacer(im, slide, all)
	out := make([][]How, len(notes))
	for i := range notes {
		for k := range notes[i].Arguments {
			o, constant, err := p.operand(&notes[i].Arguments[k])
			out[i] = append(out[i], howOf(&o, constant, err))
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
