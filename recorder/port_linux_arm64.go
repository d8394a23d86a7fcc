package recorder

import "fmt"

// What there is no port of yet: markers in programs, slots of imports, arguments that are kept of calls that take long, probes that are made on
// the first call, and Go programs.
const (
	portedMarkers = false
	portedImports = false
	portedKeeps   = false
	portedLazy    = false
	portedGo      = false
)

// ported returns an error, which wraps ErrUnsupported, if what is asked for can't be done on this processor.
func (o *Options) ported() error {
	for _, l := range []struct {
		asked bool
		what  string
	}{
		{len(o.Command) > 0, "recording a command from its beginning; give -p PID"},
		{o.Armed != nil, "--when"},
		{len(o.Args)+len(o.Returns)+len(o.Conditions) > 0, "--args, --ret and --if"},
		{len(o.Markers)+len(o.Pairs) > 0, "--markers and --pair"},
		{len(o.Imports) > 0, "--imports"},
		{o.Lazy == Lazy, "--lazy"},
		{len(o.Filters.Inside) > 0, "--inside"},
		{o.Follow, "--follow"},
		{o.Budget.Share > 0, "--budget"},
	} {
		if l.asked {
			return fmt.Errorf("callreel: %s: %w", l.what, ErrUnsupported)
		}
	}
	return nil
}
