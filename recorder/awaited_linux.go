package recorder

import (
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/libraries"
)

// await says what the recording waits for where globs have matched nothing: they may be for libraries that are loaded later. traced says
// whether others have matched. The error is that of the first glob that can't come to match, or that is more likely misspelt.
func (r *recording) await(ch *choose.Chooser, traced bool) error {
	missed := ch.Missed()
	if len(missed) == 0 {
		return r.captures.Check(ch.Names())
	}
	if !libraries.CanLoad(r.s.Process, r.s.SearchedImages) {
		return missed[0].Err()
	}
	for i := range missed {
		if m := &missed[i]; !traced && m.Misspelt() && !(m.Flag == "-m" && libraries.IsBeside(r.s.Process, r.s.SearchedImages, m.Glob)) {
			return missed[0].Err()
		}
	}
	if err := r.captures.Check(ch.Names()); err != nil {
		return err
	}
	for i := range missed {
		text := missed[i].Err().Error()
		if missed[i].Flag == "-m" {
			r.notice("%s; waiting for a library of that name to be loaded", text)
		} else {
			r.notice("%s; waiting for a library to be loaded that has such a function", text)
		}
	}
	return nil
}
