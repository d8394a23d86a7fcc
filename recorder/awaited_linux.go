package recorder

import (
	"fmt"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/libraries"
)

// await says what the recording waits for where globs have matched nothing: they may be for libraries that are loaded later. traced says
// whether others have matched. The error is that of the first glob that can't come to match, or that is more likely misspelt.
func (r *recording) await(ch *choose.Chooser, traced bool) error {
	missed := ch.Missed()
	if len(missed) == 0 {
		return r.awaitOthers(ch)
	}
	if !libraries.CanLoad(r.s.Process, r.s.SearchedImages) {
		return missed[0].Err()
	}
	for i := range missed {
		if m := &missed[i]; !traced && m.Misspelt() && !(m.Flag == "-m" && libraries.IsBeside(r.s.Process, r.s.SearchedImages, m.Glob)) {
			return missed[0].Err()
		}
	}
	for i := range missed {
		text := missed[i].Err().Error()
		if missed[i].Flag == "-m" {
			r.notice("%s; waiting for a library of that name to be loaded", text)
		} else {
			r.notice(waitsForFunction, text)
		}
	}
	return r.awaitOthers(ch)
}

// awaitOthers is await for what values and markers are asked of.
func (r *recording) awaitOthers(ch *choose.Chooser) error {
	if err := r.captures.Check(ch.Names(), r.waiter(ch.Names())); err != nil {
		return err
	}
	if err := r.awaitImports(); err != nil {
		return err
	}
	err := r.markers.Check(func(missed *glob.NoMatchError, names []string) bool {
		if !r.mayCome(missed, names) {
			return false
		}
		r.notice("%s; waiting for a library to be loaded that has such a marker", missed.Error())
		return true
	})
	if err != nil && isGoWithoutMarkers(fmt.Sprintf("/proc/%d/exe", r.s.PID())) {
		err = fmt.Errorf("%w: %w", err, errGoMarkers)
	}
	return err
}

const waitsForFunction = "%s; waiting for a library to be loaded that has such a function"

// waiter returns what says whether a library may come that has a function which an option is about, and if so tells that it is waited for.
// names are those that are there.
func (r *recording) waiter(names []string) func(*glob.NoMatchError) bool {
	return func(missed *glob.NoMatchError) bool {
		if !r.mayCome(missed, names) {
			return false
		}
		r.notice(waitsForFunction, missed.Error())
		return true
	}
}

// mayCome says whether the function that a glob has missed may come with a library. names are those that are there.
func (r *recording) mayCome(missed *glob.NoMatchError, names []string) bool {
	return !glob.Misspelt(missed.Glob, names) && libraries.CanLoad(r.s.Process, r.s.SearchedImages)
}
