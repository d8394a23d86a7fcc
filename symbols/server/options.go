package server

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/server/storage"
)

// Options say what a Server serves, to whom, and what it may take. What is 0 is its default.
type Options struct {
	Storage storage.Storage

	// CacheDir is a folder of this server's own for maps out of a bucket and for what is received; it must exist. Two servers
	// may share one.
	CacheDir string
	// CacheSize bounds the maps in CacheDir, in bytes. They are needed only for a Storage without files.
	CacheSize int64
	// MapMemory bounds the maps that are open, with the names that are kept of them, in bytes. One that is larger alone is
	// still opened.
	MapMemory int64

	// Tokens let their bearers read, PushTokens push and read.
	Tokens, PushTokens []string
	// Public are the services that need no token, see Services.
	Public []string

	MaxBody   int64 // of a POST, inflated, in bytes; a streamed one has this for each line
	MaxUpload int64 // of a pushed file, in bytes
	MaxSource int64 // of a pushed source file, in bytes
	Quota     int64 // of the storage, in bytes: pushes beyond are refused; 0 for none
	// Memory bounds what reading one pushed file may take, as symbols.Finder's Memory.
	Memory int64
	// Builds is how many maps are made at once.
	Builds int
	// MaxConnections is how many connections are served at once; more wait.
	MaxConnections int

	IdleTimeout    time.Duration // that a client may send or take nothing
	RequestTimeout time.Duration // of a request that moves no file
	BuildTimeout   time.Duration // of a map
	// MissingFor is how long an ID without symbols is remembered, and a map without DWARF used before it is looked again. As long as
	// nothing comes, that takes twice as long each time, up to 64 times this.
	MissingFor time.Duration
	// Grace is how long requests may go on when the server ends.
	Grace time.Duration

	// Upstream is asked for the files of IDs that the storage doesn't have; nil for nobody.
	Upstream symbols.Fetcher

	Log *slog.Logger // nil for none
}

// The services that Public names.
const (
	ServiceFiles     = "debuginfod" // debuginfo, executable and section of an ID
	ServiceSource    = "source"     // its source files
	ServiceSymbolize = "symbolize"
	ServiceMaps      = "symmap"
	ServiceMetrics   = "metrics"
	ServiceHealth    = "health"
	servicePush      = "push" // never public
)

// Services lists what Options.Public may name.
func Services() []string {
	return []string{ServiceFiles, ServiceSource, ServiceSymbolize, ServiceMaps, ServiceMetrics, ServiceHealth}
}

// The defaults of Options.
const (
	DefaultCacheSize      = 10 << 30
	DefaultMapMemory      = 1 << 30
	DefaultMaxBody        = 64 << 20
	DefaultMaxUpload      = 4 << 30 // a bucket takes 5 GB in one request
	DefaultMaxSource      = 16 << 20
	DefaultMaxConnections = 1024
	DefaultIdleTimeout    = 30 * time.Second
	DefaultRequestTimeout = 2 * time.Minute
	DefaultBuildTimeout   = 10 * time.Minute
	DefaultMissingFor     = 10 * time.Second
	DefaultGrace          = 15 * time.Second
)

// Check says what is wrong with the options.
func (o *Options) Check() error {
	for _, name := range o.Public {
		if !slices.Contains(Services(), name) {
			return fmt.Errorf("server: %.40q is no service: want %s", name, strings.Join(Services(), ", "))
		}
	}
	for _, token := range slices.Concat(o.Tokens, o.PushTokens) {
		if len(token) < minToken {
			return fmt.Errorf("server: a token of %d characters can be guessed: want %d at least", len(token), minToken)
		}
	}
	return nil
}

// withDefaults fills in what is not set, and says what is wrong.
func (o Options) withDefaults() (Options, error) {
	if err := o.Check(); err != nil {
		return o, err
	}
	for _, n := range []struct {
		at        *int64
		byDefault int64
	}{
		{&o.CacheSize, DefaultCacheSize}, {&o.MapMemory, DefaultMapMemory}, {&o.MaxBody, DefaultMaxBody}, {&o.MaxUpload, DefaultMaxUpload},
		{&o.MaxSource, DefaultMaxSource},
	} {
		if *n.at <= 0 {
			*n.at = n.byDefault
		}
	}
	for _, d := range []struct {
		at        *time.Duration
		byDefault time.Duration
	}{
		{&o.IdleTimeout, DefaultIdleTimeout}, {&o.RequestTimeout, DefaultRequestTimeout}, {&o.BuildTimeout, DefaultBuildTimeout},
		{&o.MissingFor, DefaultMissingFor}, {&o.Grace, DefaultGrace},
	} {
		if *d.at <= 0 {
			*d.at = d.byDefault
		}
	}
	if o.Builds <= 0 {
		o.Builds = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = DefaultMaxConnections
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
