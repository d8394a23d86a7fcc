package recorder

import (
	"errors"
	"fmt"
	"time"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/imports"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// pickImports takes the slots of images for functions that are asked for. Behind it the IDs of functions begin with id.
func (r *recording) pickImports(images []*mapped.Image, id uint32) (n imports.Picked, next uint32, err error) {
	n.Refused = map[string]int{}
	wanted := false
	for _, im := range images {
		wanted = wanted || len(im.Probe.Slotted) > 0
	}
	if r.imports.Empty() || !wanted {
		return n, id, nil
	}
	if err := r.imports.Look(r.s.Process, r.memory); err != nil {
		return n, id, err
	}
	defer r.imports.Forget()
	recorded := r.recordedAt(images)
	for _, im := range images {
		one := r.imports.Pick(im, id, recorded, r.notice)
		id += uint32(one.Recorded)
		n.Seen, n.Recorded, n.Calls, n.Ends = n.Seen+one.Seen, n.Recorded+one.Recorded, n.Calls+one.Calls, n.Ends+one.Ends
		for why, k := range one.Refused {
			n.Refused[why] += k
		}
	}
	return n, id, nil
}

// recordedAt returns what says whether a function of the process is recorded by sites of its own.
func (r *recording) recordedAt(images []*mapped.Image) imports.Recorded {
	at := map[uint64]bool{}
	for _, im := range images {
		for i := range im.Traced {
			at[im.Traced[i].Addr+im.Slide] = true
		}
	}
	for _, a := range r.s.Arenas {
		for i := range a.Fns {
			if f := &a.Fns[i]; f.ID != 0 && f.Import == nil && !ring.IsMarkID(f.ID) {
				at[f.Addr+f.Slide] = true
			}
		}
	}
	return func(addr uint64) bool { return at[addr] }
}

// awaitRelocated says when the slots of a library have been filled in that has just been mapped: loaders tell of one before they do that. nil if
// they are. ready is called before each look but the first.
func (r *recording) awaitRelocated(im *mapped.Image, ready func()) (done func() bool) {
	const (
		rest  = 5 * time.Millisecond
		tries = 400 // then it is taken as it is: weak symbols alone may stay 0
	)
	slots := imports.NewUnfilled(im.Object, im.Probe.Slotted, im.Slide)
	if slots.Filled(r.s.Process) {
		return nil
	}
	n := 0
	time.AfterFunc(rest, ready)
	return func() bool {
		if n++; n > tries || slots.Filled(r.s.Process) {
			return true
		}
		time.AfterFunc(rest, ready)
		return false
	}
}

// countImports adds what was picked of imports.
func (r *recording) countImports(n imports.Picked) {
	r.result.Imports.add(&Imports{n.Seen, n.Recorded, n.Refused, n.Calls, n.Ends})
}

func (m *Imports) add(n *Imports) {
	m.Seen, m.Recorded, m.Calls, m.Ends = m.Seen+n.Seen, m.Recorded+n.Recorded, m.Calls+n.Calls, m.Ends+n.Ends
	for why, k := range n.Refused {
		if m.Refused == nil {
			m.Refused = map[string]int{}
		}
		m.Refused[why] += k
	}
}

// awaitImports says which imports the recording waits for.
func (r *recording) awaitImports() error {
	return r.imports.Check(func(missed *glob.NoMatchError, names []string) bool {
		if !r.mayCome(missed, names) {
			return false
		}
		r.notice("%s; waiting for a library to be loaded that calls or has such a function", missed.Error())
		return true
	})
}

// noImports is the error where nothing but imports was asked for, and none can be recorded.
func (r *recording) noImports() error {
	n := &r.result.Imports
	return fmt.Errorf("callreel: process %d: %w: each of the %d slots for the functions that were asked for is %w (%s); see callreel imports -p %d",
		r.s.PID(), ErrNothing, n.Seen, ErrRefused, commonest(n.Refused), r.s.PID())
}

// checkImports refuses what imports don't go with.
func (o *Options) checkImports() error {
	if len(o.Imports) > 0 && o.Follow {
		return &ImportError{Text: o.Imports[0], Err: errors.New("imports are recorded of one process: leave --follow out")}
	}
	return nil
}
