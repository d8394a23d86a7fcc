package mapped

import (
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// Notes returns the markers of an image: those that notes tell of, or in a Go program the functions of package mark. With an error, which is
// about damaged notes, come those before the damage.
func Notes(o *object.Image) ([]sdt.Note, error) {
	notes, err := sdt.Read(o)
	if len(notes) == 0 && err == nil {
		notes = golang.MarkNotes(o)
	}
	return notes, err
}
