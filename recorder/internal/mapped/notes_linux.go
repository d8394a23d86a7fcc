package mapped

import "github.com/callreel/callreel/recorder/internal/plan"

// findNotes reads the notes of markers, and asks for a plan of their places if any of them is wanted. Notes that can't be read are none.
func (q *Search) findNotes(im *Image) {
	if q.Notes == nil {
		return
	}
	notes, _ := Notes(im.Object)
	if notes = q.Notes(notes); len(notes) == 0 {
		return
	}
	im.Notes = notes
	im.Probe.Marks = make([]uint64, len(notes))
	for i := range notes {
		im.Probe.Marks[i] = notes[i].Addr
	}
}

// findSlots asks for a plan of slots, if any are wanted.
func (q *Search) findSlots(im *Image) {
	if q.Slots != nil && !im.Probe.Loader && im.Probe.Go == nil {
		im.Probe.Slots = q.Slots(im.Object)
	}
}

// takeMarks takes over what has become of the markers, and of the places that calls by slots return to.
func (im *Image) takeMarks(all []plan.Mark) {
	n := len(im.Probe.Marks)
	im.Marks, im.Returns = all[:n:n], all[n:]
}

// Unlisted says that nothing of it is recorded.
func (im *Image) Unlisted() bool { return im.Unchosen && !im.HasMarks && !im.HasImports }
