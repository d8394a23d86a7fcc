package target

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
)

// patientTries is how often nothing is done for now when a thread would come back into a stub.
const patientTries = 4

// atOnce does it where no thread can come back into a stub, with text that was prepared before. If it can't it says that nothing was done,
// or why it isn't done yet. First threads are let out, which may do anything on their way; then comes what shows that the text is still
// what was prepared, and that all are out. None can get in again while all are stopped, so that the order in which text is restored matters only
// if we are killed meanwhile.
func (w *undoWork) atOnce(st *process.Stopped) (kept string, done bool, err error) {
	if w.text == nil {
		return "", false, nil
	}
	inside := func(pc uint64) bool { return w.r.InArena(pc) || startsAt(w.islands, pc) || startsAt(w.hosting, pc) }
	stuck, err := letOut(st, inside, fewNudges)
	if err != nil {
		return "", false, err
	}
	maps, err := w.p.Maps()
	if err != nil {
		return "", false, err
	}
	if !w.shared[0].isIn(maps) {
		return "", false, process.ErrExec
	}
	frames, err := interruptedPCs(st, maps, w.restorers, w.handlers, inside)
	if err != nil {
		return "", false, err
	}
	switch in, err := anyInside(st, inside); {
	case err != nil:
		return "", false, err
	case len(frames) > 0 && w.patient:
		return inHandler(frames), true, nil
	case stuck != 0 || in || len(frames) > 0:
		return "", false, nil
	}
	pages := text.SameMemory(w.text.Pages, w.maps, maps)
	other, err := text.Changed(w.p, pages, maps, w.doubtful)
	if err != nil || len(other) > 0 || len(pages) < len(w.text.Pages) {
		return "", false, err
	}
	for _, layer := range slices.Backward(w.text.Layers) {
		if err := text.WriteThere(w.p, layer); err != nil {
			return "", false, err
		}
	}
	if err := w.restoreLate(maps); err != nil {
		return "", false, err
	}
	w.text = &text.Undo{} // in case it is done again: nothing is left to be written
	kept, err = w.unmap(st, maps)
	return kept, true, err
}

// startsAt says whether one of patches, which are in the order of their addresses, begins there.
func startsAt(patches []stub.Patch, addr uint64) bool {
	_, found := slices.BinarySearchFunc(patches, addr, func(p stub.Patch, a uint64) int { return cmp.Compare(p.Addr, a) })
	return found
}

// anyInside says whether a thread is.
func anyInside(st *process.Stopped, inside func(pc uint64) bool) (bool, error) {
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil || isInside(regs, inside) {
			return true, err
		}
	}
	return false, nil
}
