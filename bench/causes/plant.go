package causes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A Plant is a program with one cause for its slow requests, or with none.
type Plant struct {
	Name    string
	Handler string // the function whose calls are the requests
	// Slow is what a request takes at least that has met the cause. Ordinary ones take less, but for what else the machine does.
	Slow  time.Duration
	Truth Truth
	// needs are commands on the PATH, or files, of each of which the first that is there is taken.
	needs [][]string
	file  string                                        // in C or C++, if it is
	build func(*place, context.Context) (string, error) // nil for what needn't be compiled
	start func(context.Context, *place) (*Instance, error)
}

// A Truth is what an answer has to say. Names of functions are globs.
type Truth struct {
	Path   []string `json:"path"`   // one of these functions is on the path; "*" if it can meet any
	Kinds  []string `json:"kinds"`  // one of these
	States []string `json:"states"` // one of these
	// WaitsFor are functions of the thread that was waited for, of which one has to be named. Empty if it is none of the
	// program's own.
	WaitsFor []string `json:"waits_for,omitempty"`
	// Else is what is as true of calls that the cause hits in another way: who does a thing, and who waits for that.
	Else *Truth `json:"else,omitempty"`
}

// The kinds and states of a cause.
const (
	MoreCalls, SlowerCalls, NewPath, MissingPath, Self = "more-calls", "slower-calls", "new-path", "missing-path", "self"
	CPU, Ready, Blocked                                = "cpu", "ready", "blocked"
)

// None says whether nothing was planted: then whatever is said is wrong.
func (t *Truth) None() bool { return len(t.Path) == 0 }

// place is where an instance is made: a folder of its own, and the programs that it needs.
type place struct {
	dir   string
	built string // for what is compiled once
	found []string
	seed  int
}

// find returns the paths of what the plant needs, or an error that names what is missing.
func (p *Plant) find() ([]string, error) {
	var found []string
	for _, names := range p.needs {
		path := ""
		for _, name := range names {
			if there, err := exec.LookPath(name); err == nil {
				path = there
				break
			}
		}
		if path == "" {
			return nil, fmt.Errorf("%s is missing", names[0])
		}
		found = append(found, path)
	}
	return found, nil
}

// Missing returns an error that names what of the plant this machine lacks, or nil.
func (p *Plant) Missing() error {
	_, err := p.find()
	return err
}

// makePlace finds what the plant needs and makes a folder below dir.
func (p *Plant) makePlace(dir string, seed int) (*place, error) {
	found, err := p.find()
	if err != nil {
		return nil, err
	}
	built := filepath.Join(dir, "built")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return nil, err
	}
	own, err := os.MkdirTemp(dir, "plant-")
	return &place{own, built, found, seed}, err
}

// Start starts the program and returns once it serves. Files are made below dir only, and what is compiled stays there for
// other instances. seed is for what scatters by nature. ctx ends the program by force.
func (p *Plant) Start(ctx context.Context, dir string, seed int) (*Instance, error) {
	at, err := p.makePlace(dir, seed)
	if err != nil {
		return nil, err
	}
	i, err := p.start(ctx, at)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.Name, err), os.RemoveAll(at.dir))
	}
	i.dir = at.dir
	return i, nil
}

// need is for programs each of which has one name.
func need(names ...string) (needs [][]string) {
	for _, name := range names {
		needs = append(needs, []string{name})
	}
	return needs
}

// All returns the plants, whether they can be built on this machine or not.
func All() []Plant {
	var all []Plant
	for _, some := range [][]Plant{locks(), waits(), kernelWork(), moreWork(), otherWork(), seldom(), golang(), python(), redis(), nginx(), postgres()} {
		all = append(all, some...)
	}
	return all
}
