package libraries

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/target"
)

// open is the image behind a mapping, if it is to be recorded: one of those that are going to be, one that was here before, or
// one that is planned now.
func (l *Libraries) open(ctx context.Context, m *process.Mapping, maps []process.Mapping, coming []*mapped.Image) (*mapped.Image, error) {
	for _, im := range slices.Concat(coming, l.Target.Images) {
		if im.Gone || len(im.Text) == 0 || im.Text[0].Dev != m.Dev || im.Text[0].Inode != m.Inode {
			continue
		}
		if slices.ContainsFunc(im.Text, func(t process.Mapping) bool { return mapped.PlaceOf(&t) == mapped.PlaceOf(m) }) {
			return im, nil // another part of it
		}
		return nil, nil // another copy
	}
	renewals := 0
	for _, im := range l.Target.Images {
		if !im.Gone || !im.IsPatched() || !im.IsBack(l.Target.Process, m, maps) {
			continue
		}
		if im.HasImports { // where its slots lead is another matter each time
			renewals = max(renewals, im.Renewals+1)
			continue
		}
		if im.Attempts >= maxAttempts {
			return nil, nil
		}
		return im, nil
	}
	if renewals > maxRenewals {
		return nil, nil
	}
	chosen := l.Choice.Module(path.Base(m.Path))
	if !chosen && !l.Choice.HasHooks(l.Target.Process, *m) {
		return nil, nil
	}
	im, err := l.Choice.Open(ctx, l.Target.Process, *m, maps)
	if err != nil || im == nil {
		return nil, err
	}
	im.Unloadable, im.Unchosen, im.Renewals = true, !chosen, renewals
	if im.Probe.Loader || im.Object.HasTextRelocations() {
		im.Close()
		return nil, nil
	}
	return im, nil
}

// await says when an image that was planned now is to be looked at again, nil if it can be probed.
func (l *Libraries) await(im *mapped.Image, m *process.Mapping) (done func() bool) {
	if im.Unchosen && len(im.Probe.Slotted) == 0 || l.Target.ArenaOf(im) != nil {
		return nil
	}
	return l.Choice.Await(im, l.process(), *m, l.loads.fetched)
}

// attach probes images as it is done when recording begins. Those that were here before have their stubs already.
func (l *Libraries) attach(ctx context.Context, c *target.Change) error {
	var fresh []func()
	id := l.Next
	c.Images = slices.DeleteFunc(c.Images, func(im *mapped.Image) bool {
		if a := l.Target.ArenaOf(im); a != nil {
			c.Arenas = append(c.Arenas, a)
			return false
		}
		a := &target.Arena{Images: []*mapped.Image{im}, Lo: im.Lo, Hi: im.Hi}
		traced, count := l.Choice.Pick(ctx, im, id)
		ranges := a.Take()
		if len(a.Fns) == 0 || id+uint32(traced) > l.most {
			l.pass(im)
			im.Close()
			if len(a.Fns) > 0 {
				l.Notice("%s is not recorded: too many functions were loaded", im.Path)
			}
			return true
		}
		id += uint32(traced)
		c.Fresh, c.Arenas, c.Ranges = append(c.Fresh, a), append(c.Arenas, a), append(c.Ranges, ranges...)
		fresh = append(fresh, count)
		return false
	})
	if len(c.Images) == 0 {
		return nil
	}
	if err := l.mapArenas(ctx, c); err != nil {
		for _, a := range c.Fresh {
			l.pass(a.Images[0])
			a.Images[0].Close()
		}
		return err
	}
	if err := l.introduce(c, id); err != nil {
		l.failed(c)
		return err
	}
	if err := errors.Join(l.Arm(), l.Target.Prepare(c)); err != nil {
		l.failed(c)
		return err
	}
	l.Making.Add(c.Ranges)
	d, err := l.Target.SwitchOn(ctx, c)
	l.countStop(d)
	if err != nil {
		l.failed(c)
		return err
	}
	for _, im := range c.Images {
		im.Gone, im.Attempts = false, 0
	}
	for _, count := range fresh {
		count()
	}
	l.took.Loaded += len(c.Images)
	return nil
}

// countStop counts a stop.
func (l *Libraries) countStop(d time.Duration) {
	l.took.Stops++
	l.took.Stopped += d
	l.took.Longest = max(l.took.Longest, d)
}

// failed lets it be tried again, some times.
func (l *Libraries) failed(c *target.Change) {
	for _, im := range c.Images {
		im.Gone = true
		if im.Attempts++; !im.IsPatched() {
			l.pass(im)
		}
	}
}

// pass leaves an image alone for as long as it is where it is.
func (l *Libraries) pass(im *mapped.Image) {
	for i := range im.Text {
		l.seen[mapped.PlaceOf(&im.Text[i])] = true
	}
}

// mapArenas maps the arenas, after it has noted where.
func (l *Libraries) mapArenas(ctx context.Context, c *target.Change) error {
	if len(c.Fresh) == 0 {
		return nil
	}
	for _, a := range c.Fresh {
		a.Bound(&l.Target.Runtime)
	}
	for try := 0; ; try++ {
		d, err := l.process().Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return l.Target.MapArenas(st, c.Fresh) })
		l.countStop(d)
		if (errors.Is(err, process.ErrNoSafeThread) || errors.Is(err, process.ErrTraced) || errors.Is(err, process.ErrLate)) && try < target.StopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// introduce lets everybody know of the images and their functions, whose IDs end before next, before the first event of theirs.
func (l *Libraries) introduce(c *target.Change, next uint32) error {
	for _, a := range c.Fresh {
		im := a.Images[0]
		im.Gone = true // until its sites are written
		l.Target.Images = append(l.Target.Images, im)
		if !im.Unlisted() {
			if err := l.Images.Add(im); err != nil {
				return err
			}
		}
	}
	if err := l.Functions.Add(c.Ranges, next); err != nil {
		return err
	}
	l.Next = next
	return nil
}
