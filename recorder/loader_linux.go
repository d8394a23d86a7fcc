package recorder

import (
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
)

// findLoader finds out whether the process can tell of the libraries that it loads.
func (s *session) findLoader(st *process.Stopped) error {
	s.rt.Loads, s.rt.LoaderState = false, 0
	if s.golang != nil {
		return nil
	}
	im := s.loader
	if im == nil {
		return nil
	}
	for _, t := range st.Threads() {
		if mode, err := t.SeccompMode(); err != nil || mode == 0 {
			continue
		}
		for _, nr := range probe.LoaderSyscalls() {
			if ok, err := t.SeccompAllows(uintptr(nr)); err != nil || !ok {
				return err
			}
		}
	}
	s.rt.Loads = true
	// The state is looked at only where it is the loader's own: that isn't unmapped.
	if debug, err := findDebug(s.p); err == nil && debug >= im.Lo && debug+debugSize <= im.Hi && debug%4 == 0 {
		s.rt.LoaderState = debug + debugState
	}
	return nil
}

// mayKeepNames says whether stubs may see to it that names are known which threads give themselves. Programs that have forbidden themselves
// what that takes are recorded without.
func (s *session) mayKeepNames(st *process.Stopped) (bool, error) {
	if s.golang != nil { // whose threads have no names of their own
		return false, nil
	}
	for _, t := range st.Threads() {
		if mode, err := t.SeccompMode(); err != nil || mode == 0 {
			continue
		}
		for _, call := range probe.NameSyscalls() {
			if ok, err := t.SeccompAllows(uintptr(call[0]), call[1:]...); err != nil || !ok {
				return false, err
			}
		}
	}
	return true, nil
}
