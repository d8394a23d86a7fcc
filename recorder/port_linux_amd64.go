package recorder

// Everything can be recorded here.
const (
	portedMarkers = true
	portedImports = true
	portedKeeps   = true
	portedLazy    = true
	portedGo      = true
)

// ported returns an error, which wraps ErrUnsupported, if what is asked for can't be done on this processor.
func (*Options) ported() error { return nil }
