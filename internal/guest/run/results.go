package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/callreel/callreel/internal/guest"
)

// results are what has come of the jobs.
type results struct {
	jobs   []guest.Job
	began  time.Time
	ended  []bool
	failed int
}

// event takes what the guest tells.
func (r *results) event(e guest.Event) {
	since := time.Since(r.began).Seconds()
	if e.Job < 0 || e.Job >= len(r.jobs) {
		return // it is no more to be believed than the tests are
	}
	switch e.Kind {
	case guest.Up:
		say("up after %.1f s", since)
	case guest.Output:
		_, _ = os.Stdout.Write(e.Data)
	case guest.Ended:
		r.ended[e.Job] = true
		word := "ok"
		if e.Status != 0 {
			word = fmt.Sprintf("FAIL (status %d)", e.Status)
			r.failed++
		}
		say("%s %s %.1f s", word, r.jobs[e.Job].Name, e.Seconds)
	case guest.AllDone:
		say("all done after %.1f s", since)
	}
}

// sum is an error if not all jobs have ended well.
func (r *results) sum() error {
	var err error
	if r.failed > 0 {
		err = fmt.Errorf("%d of %d failed", r.failed, len(r.jobs))
	}
	for i, ended := range r.ended {
		if !ended {
			err = errors.Join(err, fmt.Errorf("%s has not ended", r.jobs[i].Name))
		}
	}
	return err
}
