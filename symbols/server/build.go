package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/server/storage"
)

// builder makes maps of what the storage has.
type builder struct {
	storage  storage.Storage
	upstream symbols.Fetcher
	log      *slog.Logger
	memory   int64
	timeout  time.Duration
	slots    chan struct{}
	metrics  *metrics
}

// build makes the map of an ID and stores it in the place of the one with the tag stale, if that isn't "". It returns nil
// when another server has stored one meanwhile.
func (b *builder) build(ctx context.Context, id, stale string) (*symbols.Map, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if err := b.haveSources(ctx, id); err != nil {
		return nil, err
	}
	lease, err := b.await(ctx, id, stale)
	if err != nil || lease == nil {
		return nil, err
	}
	defer func() {
		if err := lease.release(); err != nil {
			b.log.Warn("giving a lease back", "id", id, "error", err)
		}
	}()
	// Who held the lease before may have stored it.
	if info, err := b.storage.Stat(ctx, key(id, kindMap)); err == nil && info.Tag != stale {
		return nil, nil
	}
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("server: map of %s: waiting for others to be made: %w", id, context.Cause(ctx))
	}
	start := time.Now()
	m, err := b.make(ctx, id)
	if err == nil {
		err = b.keep(ctx, id, m, stale)
	}
	took := time.Since(start)
	b.metrics.building.Observe(took.Seconds())
	if errors.Is(err, storage.ErrConflict) {
		b.metrics.builds.WithLabelValues("late").Inc()
		return nil, m.Close()
	}
	if err != nil {
		b.metrics.builds.WithLabelValues("failed").Inc()
		b.log.Warn("no map was made", "id", id, "seconds", took.Seconds(), "error", err)
		return nil, err
	}
	b.metrics.builds.WithLabelValues("made").Inc()
	functions, _, _, size := m.Counts()
	b.log.Info("map made", "id", id, "seconds", took.Seconds(), "bytes", size, "functions", functions, "dwarf", m.HasDWARF())
	return m, nil
}

// haveSources says whether there is anything to make a map of.
func (b *builder) haveSources(ctx context.Context, id string) error {
	for _, kind := range []string{kindDebugInfo, kindExecutable, kindWhole} {
		if _, err := b.storage.Stat(ctx, key(id, kind)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if b.upstream != nil {
		return b.fetchAll(ctx, id)
	}
	return fmt.Errorf("server: no symbols for %s: %w", id, fs.ErrNotExist)
}

// await takes the lease of an ID. It returns nil when another server has stored the map.
func (b *builder) await(ctx context.Context, id, stale string) (*lease, error) {
	const first, last = 20 * time.Millisecond, time.Second
	var other watched
	for wait := first; ; wait = min(2*wait, last) {
		// The renewal must go on while the map is put, so it isn't bound to anything shorter.
		lease, err := tryLease(ctx, b.storage, id, &other)
		if err != nil || lease != nil {
			return lease, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Errorf("server: map of %s: waiting for the server that makes it: %w", id, context.Cause(ctx))
		}
		if info, err := b.storage.Stat(ctx, key(id, kindMap)); err == nil && info.Tag != stale {
			return nil, nil
		}
	}
}

// make makes the map of what there is: of the executable with its debug information if both are there.
func (b *builder) make(ctx context.Context, id string) (*symbols.Map, error) {
	opener := object.Opener{Memory: object.NewAllowance(b.memory)}
	var files []io.Closer
	defer func() {
		for _, f := range files {
			_ = f.Close() // only read from
		}
	}()
	open := func(id, kind string) (*object.Image, error) {
		for _, role := range roles(kind) {
			im, file, err := b.open(ctx, opener, id, key(id, role))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				files = append(files, file, im)
			}
			return im, err
		}
		return nil, fmt.Errorf("server: no %s of %s: %w", kind, id, fs.ErrNotExist)
	}
	debug, debugErr := open(id, kindDebugInfo)
	im, err := open(id, kindExecutable)
	opts := symbols.BuildOptions{Debug: debug}
	switch {
	case debugErr != nil && err != nil:
		return nil, errors.Join(debugErr, err)
	case err != nil || debugErr == nil && im.CheckLayout(debug) != nil:
		im, opts.Debug = debug, nil
	case debugErr != nil || im.Section(".debug_info") != nil:
		opts.Debug = nil
	}
	holder := im
	if opts.Debug != nil {
		holder = opts.Debug
	}
	if _, alt, ok := holder.GnuDebugAltLink(); ok {
		if id, ok := parseID(fmt.Sprintf("%x", alt)); ok {
			opts.Alt, err = open(id, kindDebugInfo)
			if err != nil {
				b.log.Warn("debug information that dwz has taken out is missing", "id", id, "of", holder.ID(), "error", err)
			}
		}
	}
	m, stats, err := symbols.BuildMap(ctx, im, opts)
	if err != nil {
		return nil, err
	}
	for _, problem := range stats.Problems {
		b.log.Debug("damage in debug information", "id", id, "error", problem)
	}
	return m, nil
}

// open opens an image of the storage; file is what it is in.
func (b *builder) open(ctx context.Context, opener object.Opener, id, at string) (im *object.Image, file io.Closer, err error) {
	path := b.storage.Path(at)
	file = io.NopCloser(nil)
	if path == "" {
		t, err := b.copyOf(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		path, file = t.Path(), t
	}
	if im, err = opener.OpenID(path, id); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return im, file, nil
}

// copyOf gets an object out of the bucket.
func (b *builder) copyOf(ctx context.Context, at string) (*storage.Temp, error) {
	o, err := b.storage.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer o.Close() // only read from
	t, err := b.storage.Temp()
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(t, o); err != nil {
		return nil, errors.Join(fmt.Errorf("server: %s: %w", at, err), t.Close())
	}
	return t, nil
}

// keep stores a map.
func (b *builder) keep(ctx context.Context, id string, m *symbols.Map, stale string) error {
	if m.ID() != id {
		return fmt.Errorf("server: the map of %s is of ID %.80q", id, m.ID())
	}
	t, err := b.storage.Temp()
	if err != nil {
		return err
	}
	defer t.Close() // it was put, or is of no use
	if _, err := m.WriteTo(t); err != nil {
		return fmt.Errorf("server: map of %s: %w", id, err)
	}
	return b.storage.Put(ctx, key(id, kindMap), t, storage.Meta{}, stale)
}
