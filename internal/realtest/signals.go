package realtest

import (
	"os"
	"os/signal"
	"testing"
)

// DefaultSignals lets programs that are started from now on have the default effect of signals, or catch them. What
// nohup or a shell's background job lets a test binary ignore, they would inherit, and sh can't catch what it inherits
// so. For the test binary itself nothing changes.
func DefaultSignals(t testing.TB, signals ...os.Signal) {
	t.Helper()
	for _, s := range signals {
		if signal.Ignored(s) {
			// What is caught isn't inherited. It is never stopped: the signal would be ignored again, and Ignored
			// would no longer say so.
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
