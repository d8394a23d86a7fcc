package recorder

import (
	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/libraries"
)

// await says what the recording waits for where globs have matched nothing: they may be for libraries that are loaded later. traced says
// whether others have matched. The error is that of the first glob that can't come to match, or that is more likely misspelt.
func (r *recording) await(ch *chooser, traced bool) error {
	missed := ch.missed()
	if len(missed) == 0 {
		return r.captures.Check(ch.sample)
	}
	if !libraries.CanLoad(r.s.Process, r.s.SearchedImages) {
		return missed[0].told()
	}
	for i := range missed {
		if m := &missed[i]; !traced && glob.Misspelt(m.glob, m.names) && !(m.flag == "-m" && libraries.IsBeside(r.s.Process, r.s.SearchedImages, m.glob)) {
			return missed[0].told()
		}
	}
	if err := r.captures.Check(ch.sample); err != nil {
		return err
	}
	for i := range missed {
		text := missed[i].told().Error()
		if missed[i].flag == "-m" {
			r.notice("%s; waiting for a library of that name to be loaded", text)
		} else {
			r.notice("%s; waiting for a library to be loaded that has such a function", text)
		}
	}
	return nil
}
