package mapped

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

// Unlisted says that nothing of it is recorded.
func (im *Image) Unlisted() bool { return im.Unchosen && !im.HasMarks }
