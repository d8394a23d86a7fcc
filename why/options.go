package why

import (
	"errors"
	"runtime"
	"time"
)

// Options say which calls are explained.
type Options struct {
	// Match chooses functions by their names, as recorded or as Name gives them. It is needed unless Call is given or the reel is a dump.
	Match func(name string) bool
	// Slowest is how many of the longest calls are explained; 0 means 1 unless Over or Call is given.
	Slowest int
	// Over has all calls explained that took longer, the longest first, up to MaxCalls.
	Over time.Duration
	// Call has this one explained.
	Call *CallID
	// Name turns a recorded name into the one shown; nil shows it as recorded.
	Name func(string) string
	// Peers is with how many ordinary calls each is compared; 0 means DefaultPeers.
	Peers int
	// Workers is how many goroutines read; 0 means one for each processor.
	Workers int
}

const (
	// DefaultPeers is how many ordinary calls are looked into.
	DefaultPeers = 200
	// MaxCalls is how many calls are explained at most.
	MaxCalls = 100
	// fewPeers is how few ordinary calls are too few for medians to say much.
	fewPeers = 5
)

var (
	// ErrNoTimes says that the events of a reel carry no times.
	ErrNoTimes = errors.New("its events carry no times: it was recorded with --clock none")
	// ErrNotChosen says that nothing says which call is meant.
	ErrNotChosen = errors.New("it doesn't say which call is meant")
	// ErrNoCall says that there is no such call.
	ErrNoCall = errors.New("there is no such call")
)

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (o *Options) peers() int {
	if o.Peers > 0 {
		return o.Peers
	}
	return DefaultPeers
}
