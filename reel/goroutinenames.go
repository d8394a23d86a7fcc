package reel

// The marker by which a Go program names a goroutine: mark.GoroutineName. Its marks are instants with the name for a value.
const (
	goroutineNameProvider = "callreel"
	goroutineNameMarker   = "thread_name"
)

// maxGoroutineNames bounds how many are kept: those named first.
const maxGoroutineNames = 1 << 16

// GoroutineNames are the names that goroutines of a Go program have given themselves, by their IDs: the last of each. Without any that is told
// by the markers alone, else all marks are read. It is nil then.
func (f *File) GoroutineNames() map[uint64]string {
	of := map[uint32]bool{}
	for i := range f.markers {
		m := &f.markers[i]
		if m.Kind == MarkInstant && m.Provider == goroutineNameProvider && m.Name == goroutineNameMarker && len(m.Arguments) == 1 {
			of[uint32(i+1)] = true
		}
	}
	if len(of) == 0 || !f.header.Goroutines {
		return nil
	}
	names := map[uint64]string{}
	f.AllMarks(func(_ uint32, x *Mark) bool {
		if !of[x.Marker] || x.Goroutine == 0 || len(x.Values) != 1 || len(x.Values[0].Bytes) == 0 {
			return true
		}
		if _, known := names[x.Goroutine]; known || len(names) < maxGoroutineNames {
			names[x.Goroutine] = string(x.Values[0].Bytes)
		}
		return true
	})
	return names
}
