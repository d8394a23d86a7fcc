package target

import (
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/linkmap"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// findLoader finds out whether the process can tell of the libraries that it loads.
func (s *Target) findLoader(st *process.Stopped) error {
	s.Runtime.Loads, s.Runtime.LoaderState = false, 0
	im := s.Loader
	if im == nil || !s.lang.loadsLibraries {
		return nil
	}
	if ok, err := mayCall(st, stub.ForLoader); err != nil || !ok {
		return err
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
	return mayCall(st, stub.ForNames)
}
