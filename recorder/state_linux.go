package recorder

import "github.com/callreel/callreel/recorder/internal/owner"

// What others ask of a recording.

func (r *recording) pid() int { return r.s.PID() }

// owner says in the recovery memory that we live.
func (r *recording) owner() *owner.Owner { return r.s.Owner }

// isGo says whether the program is one in Go.
func (r *recording) isGo() bool { return r.s.Go != nil }

// follows says whether children are recorded, too.
func (r *recording) follows() bool { return r.opt.Follow }

// threads are the globs of which threads are recorded, empty for all.
func (r *recording) threads() []string {
	filters := &r.opt.Filters
	return filters.Threads
}

func (r *recording) setThreads(globs []string) {
	filters := &r.opt.Filters
	filters.Threads = globs
}

// keepsLong says whether only calls of at least some duration are kept, which can be changed then.
func (r *recording) keepsLong() bool {
	config := &r.s.Runtime
	return config.Min
}

func (r *recording) closePlans() { r.plans.Close() }

// tellUser hands a notice on to who has asked for them, if anybody has.
func (r *recording) tellUser(format string, args ...any) {
	if notice := r.opt.Notice; notice != nil {
		notice(format, args...)
	}
}
