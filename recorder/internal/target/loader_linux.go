package target

import (
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/linkmap"
	"github.com/callreel/callreel/recorder/internal/stub/amd64"
)

// findLoader finds out whether the process can tell of the libraries that it loads.
func (s *Target) findLoader(st *process.Stopped) error {
	s.Runtime.Loads, s.Runtime.LoaderState = false, 0
	im := s.Loader
	if im == nil || !s.lang.loadsLibraries {
		return nil
	}
	for _, t := range st.Threads() {
		if mode, err := t.SeccompMode(); err != nil || mode == 0 {
			continue
		}
		for _, nr := range amd64.LoaderSyscalls() {
			if ok, err := t.SeccompAllows(uintptr(nr)); err != nil || !ok {
				return err
			}
		}
	}
	s.Runtime.Loads = true
	// The state is looked at only where it is the loader's own: that isn't unmapped.
	if debug, err := linkmap.FindDebug(s.Process); err == nil && debug >= im.Lo && debug+linkmap.DebugSize <= im.Hi && debug%4 == 0 {
		s.Runtime.LoaderState = debug + linkmap.DebugState
	}
	return nil
}

// mayKeepNames says whether stubs may see to it that names are known which threads give themselves. Programs that have forbidden themselves
// what that takes are recorded without.
func (s *Target) mayKeepNames(st *process.Stopped) (bool, error) {
	if !s.lang.threadsNamed {
		return false, nil
	}
	for _, t := range st.Threads() {
		if mode, err := t.SeccompMode(); err != nil || mode == 0 {
			continue
		}
		for _, call := range amd64.NameSyscalls() {
			if ok, err := t.SeccompAllows(uintptr(call[0]), call[1:]...); err != nil || !ok {
				return false, err
			}
		}
	}
	return true, nil
}
