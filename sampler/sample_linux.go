package sampler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/process/perf"
)

// Sample takes stacks at a rate until the process ends, the time is over, or ctx ends,
// which is no error. It follows new threads and, without Wall, new processes. Where perf
// events are not permitted it does as with Wall, at DefaultWallRate, and gives notice.
//
// A command may run on when Sample returns: see Profile.Wait. The errors are those of
// process.Open and process.Launch.
func Sample(ctx context.Context, o SampleOptions) (*Profile, error) {
	begun := ownCPU()
	s := &sampling{opt: o, profile: &Profile{Wall: o.Wall, Rate: o.Rate}, tids: map[uint32]struct{}{}}
	if s.opt.Notice == nil {
		s.opt.Notice = func(string, ...any) {}
	}
	s.table = newStackTable(s.profile)
	s.files = newSampledFiles(o.MaxFrames, o.Memory)
	s.profile.closers = append(s.profile.closers, s.files.close)
	err := s.begin(ctx)
	defer s.end()
	if err == nil {
		err = s.run(ctx)
		s.end()
	}
	p := s.profile
	if p.command != nil && ctx.Err() != nil {
		p.passOn(ctx)
	}
	if err != nil {
		if p.command != nil { // it has begun, and nobody else waits for it
			_, werr := p.Wait(ctx)
			err = errors.Join(err, werr)
		}
		return nil, errors.Join(err, p.Close())
	}
	p.Threads, p.OwnCPU = len(s.tids), ownCPU()-begun
	if !p.Wall {
		p.Unseen = max(p.CPU-time.Duration(s.own+p.Lost)*time.Second/time.Duration(p.Rate), 0)
	}
	p.Problems = append(p.Problems, s.files.problems...)
	return p, nil
}

// ownCPU is the processor time that we have used.
func ownCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sampling is one run of Sample.
type sampling struct {
	opt     SampleOptions
	profile *Profile
	table   *stackTable
	files   *sampledFiles
	p       *process.Process
	tids    map[uint32]struct{} // that were seen in samples

	used time.Duration // processor time of the process when we began
	own  uint64        // samples of the process itself, not of those that it has started

	events    *perf.Events // nil with Wall
	processes map[uint32]*sampledProcess
	forked    map[uint32]bool // threads that events follow by themselves, while they are being set up
	ending    []uint32        // processes that have ended
	told      time.Time       // when progress was last shown
}

// begin finds or starts the process and sets the clock.
func (s *sampling) begin(ctx context.Context) (err error) {
	if len(s.opt.Command) > 0 {
		s.profile.command, err = process.Launch(ctx, process.Command{
			Path: s.opt.Command[0], Args: s.opt.Command, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			Ignored: s.opt.Ignored, AtExec: true,
		}, process.StopOptions{}, func(st *process.Stopped) error {
			s.p = st.Process()
			return s.clock()
		})
		return err
	}
	if s.p, err = process.Open(s.opt.PID); err != nil {
		return err
	}
	s.profile.closers = append(s.profile.closers, s.p.Close)
	s.p.LimitMemory(s.files.memory.Limit())
	if s.opt.Names != nil {
		maps, err := s.p.Maps()
		if err != nil {
			return err
		}
		s.opt.Names.Prepare(ctx, newSpace(regionsOf(maps), s.files.opener(s.p), nil).images) // their files are s.files'
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return s.clock()
}

// clock opens events for all threads, or decides to do without.
func (s *sampling) clock() error {
	s.profile.Begun = time.Now()
	s.used, _ = s.p.CPU() // it has not ended, or that will be seen
	if !s.profile.Wall {
		if s.opt.Rate == 0 {
			s.opt.Rate = DefaultRate
		}
		s.profile.Rate = s.opt.Rate
		err := s.openEvents()
		if err == nil || !errors.Is(err, perf.ErrNotPermitted) {
			return err
		}
		s.opt.Notice("%v; all threads are sampled by stopping them instead, as with --wall, %d times a second", err, DefaultWallRate)
		s.profile.Wall, s.opt.Rate = true, DefaultWallRate
	}
	if s.opt.Rate == 0 {
		s.opt.Rate = DefaultWallRate
	}
	s.profile.Rate = s.opt.Rate
	return nil
}

// openEvents samples all threads. Those that start meanwhile are either followed, which a
// record of their start says, or found when the threads are listed again.
func (s *sampling) openEvents() error {
	var err error
	if s.events, err = perf.Open(perf.Options{Rate: s.opt.Rate, Stack: s.opt.StackSize}); err != nil {
		return err
	}
	s.processes, s.forked = map[uint32]*sampledProcess{}, map[uint32]bool{}
	first := &sampledProcess{files: s.files, pid: uint32(s.p.Pid()), known: map[string]int32{}}
	first.adopt(s.p)
	s.processes[first.pid] = first
	opened := map[int]bool{}
	const rounds = 16
	for range rounds {
		infos, err := s.p.Threads()
		if err != nil {
			return err
		}
		if len(opened) > 0 {
			time.Sleep(time.Millisecond) // a thread is listed a moment before the record is written
			if err := s.drain(); err != nil {
				return err
			}
		}
		more := false
		for _, t := range infos {
			if opened[t.TID] || s.forked[uint32(t.TID)] || t.Worker || t.State == 'Z' || t.State == 'X' {
				continue
			}
			if err := s.events.Add(t.TID); err != nil && !errors.Is(err, unix.ESRCH) {
				return errors.Join(err, s.closeEvents())
			}
			opened[t.TID], more = true, true
		}
		if !more {
			break
		}
	}
	s.forked = nil
	s.profile.UserOnly = s.events.UserOnly
	return nil
}

func (s *sampling) closeEvents() error {
	err := s.events.Close()
	s.events = nil
	return err
}

// end lets go of all but the files.
func (s *sampling) end() {
	if s.events != nil {
		_ = s.closeEvents() // nothing is lost by it
	}
	for _, p := range s.processes {
		p.close(s.table)
	}
}

// How often the rings are emptied at least, so that most processes can still be looked at,
// and how often progress is shown.
const (
	tick  = 25 * time.Millisecond
	shown = 100 * time.Millisecond
)

// run samples until it is time to end.
func (s *sampling) run(ctx context.Context) error {
	if s.opt.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, s.profile.Begun.Add(s.opt.Duration))
		defer cancel()
	}
	defer func() { s.profile.Duration = time.Since(s.profile.Begun) }()
	if s.profile.Wall {
		return s.wall(ctx)
	}
	for ctx.Err() == nil && !s.profile.Ended {
		wait := tick
		if d, ok := ctx.Deadline(); ok {
			wait = max(min(wait, time.Until(d)), time.Millisecond)
		}
		if err := s.events.Wait(wait); err != nil {
			return err
		}
		s.profile.Ended = !s.p.Alive() // before the rings are emptied for the last time
		if err := s.drain(); err != nil {
			return err
		}
		s.progress()
	}
	return nil
}

func (s *sampling) progress() {
	if used, err := s.p.CPU(); err == nil {
		s.profile.CPU = used - s.used
	}
	if now := time.Now(); s.opt.Progress != nil && now.Sub(s.told) >= shown {
		s.told = now
		s.opt.Progress(Progress{
			Elapsed: time.Since(s.profile.Begun), Samples: s.profile.Samples, Lost: s.profile.Lost, Threads: len(s.tids),
		})
	}
}

// drain takes what is in the rings.
func (s *sampling) drain() error {
	if err := s.events.Drain(s.record); err != nil {
		return fmt.Errorf("process %d: %w", s.p.Pid(), err)
	}
	for _, pid := range s.ending {
		// Until now other processors' rings may have held samples of it.
		if p := s.processes[pid]; p != nil {
			p.close(s.table)
			delete(s.processes, pid)
		}
	}
	s.ending = s.ending[:0]
	return nil
}

// record deals with one thing that has happened.
func (s *sampling) record(r *perf.Record) {
	switch r.Type {
	case perf.Sample:
		s.profile.Samples++
		if int(r.PID) == s.p.Pid() {
			s.own++
		}
		s.tids[r.TID] = struct{}{}
		p := s.process(r.PID)
		p.used = s.profile.Samples
		s.table.count(p.walk(r, s.table))
	case perf.Lost, perf.LostSamples:
		s.profile.Lost += r.Count
	case perf.Throttle:
		s.profile.Throttled++
	case perf.Mmap:
		s.process(r.PID).mapped(r)
	case perf.Comm:
		if r.Exec {
			p := s.process(r.PID)
			p.executed(s.table)
			p.renamed(string(r.Name))
		} else if r.PID == r.TID {
			s.process(r.PID).renamed(string(r.Name))
		}
	case perf.Fork:
		if s.forked != nil {
			s.forked[r.TID] = true
		}
		if parent := s.processes[r.Parent]; r.PID != r.Parent && parent != nil && s.processes[r.PID] == nil {
			s.process(r.PID).inherit(parent)
		}
	case perf.Exit:
		if r.PID == r.TID && s.processes[r.PID] != nil {
			s.ending = append(s.ending, r.PID)
		}
	}
}

// maxProcesses bounds what is kept of processes, of which each takes half a megabyte.
const maxProcesses = 64

// process returns what is known of a process.
func (s *sampling) process(pid uint32) *sampledProcess {
	if p := s.processes[pid]; p != nil {
		return p
	}
	if len(s.processes) >= maxProcesses {
		var oldest *sampledProcess
		for _, p := range s.processes {
			if oldest == nil || p.used < oldest.used {
				oldest = p
			}
		}
		oldest.close(s.table)
		delete(s.processes, oldest.pid)
	}
	p := &sampledProcess{files: s.files, pid: pid, name: "?", known: map[string]int32{}, used: s.profile.Samples}
	p.look()
	s.processes[pid] = p
	return p
}

// isFile says whether the file of an inode is still to be found under a name. Device
// numbers are not compared: on btrfs and overlays maps has others than stat.
func isFile(path string, inode uint64) bool {
	var st syscall.Stat_t
	return syscall.Stat(path, &st) == nil && st.Ino == inode
}
