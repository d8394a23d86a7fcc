package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// snapshot is what a thread's walk needs, which goes on without its process.
type snapshot struct {
	thread unwind.Snapshot
	images unwind.Map
	files  []*object.Image
}

// takeSnapshot stops the main thread of a process for a moment, once it waits. The snapshot must
// be closed.
func takeSnapshot(ctx context.Context, pid int) (s *snapshot, err error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := waits(ctx, p); err != nil {
		return nil, err
	}
	s = &snapshot{}
	if err := s.readImages(p); err != nil {
		return nil, errors.Join(err, s.close())
	}
	err = p.EachThread(ctx, process.StopOptions{}, []int{pid}, func(t *process.Thread, err error) error {
		if err != nil {
			return err
		}
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		s.read(p, regs)
		return nil
	}, nil)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// waits returns when all threads of a process sleep.
func waits(ctx context.Context, p *process.Process) error {
	for ctx.Err() == nil {
		threads, err := p.Threads()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(threads, func(t process.ThreadInfo) bool { return t.State != 'S' }) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

// readImages opens the files that are mapped.
func (s *snapshot) readImages(p *process.Process) error {
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	opened := map[string]unwind.Image{}
	for _, m := range maps {
		entry := unwind.Mapping{
			Start: m.Start, End: m.End, Exec: m.Perm&process.PermExec != 0, Write: m.Perm&process.PermWrite != 0,
		}
		if m.Path != "" && m.Offset == 0 && opened[m.Path] == nil {
			if file, err := object.Open(m.Path); err == nil { // else it is data
				s.files = append(s.files, file)
				opened[m.Path] = unwind.NewFileImage(file, m.Start-file.BaseAddr())
			}
		}
		if im := opened[m.Path]; im != nil {
			entry.Image = im
		}
		s.images = append(s.images, entry)
	}
	return nil
}

// read copies what is in use of the stack, up to the mapping's end.
func (s *snapshot) read(p *process.Process, r *process.Regs) {
	for k, v := range r.DWARF() {
		s.thread.Regs.Set(k, v) // DWARF's numbers
	}
	s.thread.Regs.PC = r.PC()
	s.thread.Addr = r.SP() - unwind.Host().RedZone()
	size := uint64(1 << 16)
	if m, ok := s.images.Mapping(r.SP()); ok {
		size = min(size, m.End-s.thread.Addr)
	}
	s.thread.Stack = make([]byte, size)
	s.thread.Stack = s.thread.Stack[:p.ReadUpTo(s.thread.Stack, s.thread.Addr)]
}

func (s *snapshot) close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
