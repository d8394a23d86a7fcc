package probes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// catchUp follows what was asked of the switches that lead. Where that fails for now it is tried again until it has been done or the
// recording ends. A recording that has ended has nothing to follow any more.
func (s *Switches) catchUp() (a Count, err error) {
	lead := s.c.Lead
	lead.requests.Lock()
	rules, version := slices.Clone(lead.rules), lead.version
	lead.requests.Unlock()
	s.requests.Lock()
	defer s.requests.Unlock()
	if version == s.version {
		return a, nil
	}
	s.rules = rules // what is loaded from now on goes by them in any case
	switch a, err = s.apply(); {
	case err == nil || errors.Is(err, errEnding):
		s.version = version
		return a, nil
	case errors.Is(err, ErrNotSettable):
		s.version = version // it can never be done
	case !s.ended && !s.behind:
		s.behind = true
		s.wg.Go(s.retry)
	}
	return Count{}, err
}

// retry tries to catch up until it has.
func (s *Switches) retry() {
	for {
		select {
		case <-s.over:
			return
		case <-time.After(retryAfter):
		}
		if _, err := s.catchUp(); err == nil {
			break
		}
	}
	s.requests.Lock()
	s.behind = false
	s.requests.Unlock()
}

// Failure is that of a recording that follows.
type Failure struct {
	PID   int
	Err   error
	Again bool // it is tried again
}

// Change follows a rule here, and where these switches lead. It returns when calls that begin from then on are recorded, or not, as was asked
// for, but for those of failed.
func (s *Switches) Change(q Rule) (a Count, failed []Failure, err error) {
	a, followers, err := s.change(q)
	for _, f := range followers {
		done, err := f.catchUp()
		a.add(done)
		if err != nil {
			failed = append(failed, Failure{f.c.Target.PID(), err, !errors.Is(err, ErrNotSettable)})
		}
	}
	return a, failed, err
}

func (s *Switches) change(q Rule) (a Count, followers []*Switches, err error) {
	s.requests.Lock()
	defer s.requests.Unlock()
	rules := s.rules
	if q.All || len(q.Functions) > 0 {
		s.rules = []Rule{q}
	} else {
		s.rules = append(slices.Clip(rules), q)
	}
	if len(s.rules) > maxRules {
		s.rules = rules
		return a, nil, fmt.Errorf("%w: %d changes have been asked for since --all or -f", ErrNotSettable, maxRules)
	}
	if a, err = s.apply(); err != nil {
		s.rules = rules
		return a, nil, err
	}
	s.version++
	return a, slices.Collect(maps.Keys(s.followers)), nil
}

// add adds what became of it in another recording.
func (a *Count) add(b Count) {
	a.On, a.Off, a.Changed, a.Kept = a.On+b.On, a.Off+b.Off, a.Changed+b.Changed, a.Kept+b.Kept
}
