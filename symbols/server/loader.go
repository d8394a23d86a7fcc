package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/server/storage"
)

// loader opens maps: from the storage's files, from the cache on disk, from the bucket, or new ones.
type loader struct {
	storage storage.Storage
	disk    *diskCache
	builder *builder
	metrics *metrics
	memory  int64 // of all maps
}

// mostTexts bounds the texts that are kept of one map, in bytes. The names of a program of 100,000 functions in C++ have some 60 MB.
const mostTexts = 128 << 20

// load finds or makes the map of an ID.
func (l *loader) load(ctx context.Context, id string) (*openMap, error) {
	m, from, err := l.find(ctx, id)
	if err != nil {
		if from = "failed"; errors.Is(err, fs.ErrNotExist) {
			from = "missing"
		}
	}
	l.metrics.loads.WithLabelValues(from).Inc()
	if err != nil {
		return nil, err
	}
	return newOpenMap(m, min(mostTexts, l.memory/4)), nil
}

func (l *loader) find(ctx context.Context, id string) (m *symbols.Map, from string, err error) {
	stale := "" // the tag of a map that is to be replaced
	for range maxTries {
		m, from, info, err := l.stored(ctx, id)
		switch {
		case err == nil && !l.outdated(ctx, id, m, info):
			return m, from, nil
		case err == nil:
			stale = info.Tag
			if err := m.Close(); err != nil {
				return nil, "", err
			}
		case errors.Is(err, symbols.ErrNotMap):
			stale = info.Tag // damaged, or of an earlier version of callreel
		case !errors.Is(err, fs.ErrNotExist):
			return nil, "", err
		}
		built, err := l.builder.build(ctx, id, stale)
		if err != nil {
			return nil, "", err
		}
		if built != nil {
			return built, "built", nil
		}
		// Another server has made it.
	}
	return nil, "", fmt.Errorf("server: map of %s: it changes all the time", id)
}

// maxTries bounds how often another server may be faster.
const maxTries = 10

// outdated says whether a map without DWARF was made before a file with DWARF came.
func (l *loader) outdated(ctx context.Context, id string, m *symbols.Map, info storage.Info) bool {
	if m.HasDWARF() {
		return false
	}
	for _, kind := range []string{kindDebugInfo, kindWhole} {
		if debug, err := l.storage.Stat(ctx, key(id, kind)); err == nil && debug.Modified.After(info.Modified) {
			return true
		}
	}
	return false
}

// stored opens the map that the storage has.
func (l *loader) stored(ctx context.Context, id string) (m *symbols.Map, from string, info storage.Info, err error) {
	at := key(id, kindMap)
	if info, err = l.storage.Stat(ctx, at); err != nil {
		return nil, "", info, err
	}
	if path := l.storage.Path(at); path != "" {
		m, err = symbols.Open(path)
		from = "storage"
	} else if path := l.disk.path(id, info.Tag); path != "" {
		if m, err = symbols.Open(path); errors.Is(err, symbols.ErrNotMap) {
			_ = os.Remove(path) // so that the next one is kept
		}
		from = "disk"
	}
	if m == nil && from != "storage" && (err == nil || errors.Is(err, symbols.ErrNotMap) || errors.Is(err, fs.ErrNotExist)) {
		// What the disk has may have been damaged or removed.
		m, err = l.fetch(ctx, id, info)
		from = "storage"
	}
	if err != nil {
		return nil, "", info, err
	}
	if m.ID() != id {
		return nil, "", info, errors.Join(fmt.Errorf("server: %s: %w: it is of ID %.80q", at, symbols.ErrNotMap, m.ID()), m.Close())
	}
	return m, from, info, nil
}

// fetchPiece is how much of a map is read at once, in bytes.
const fetchPiece = 512 << 10

// fetch gets a map out of the bucket.
func (l *loader) fetch(ctx context.Context, id string, info storage.Info) (m *symbols.Map, err error) {
	o, err := l.storage.Open(ctx, info.Key)
	if err != nil {
		return nil, err
	}
	defer o.Close() // only read from
	err = l.disk.put(id, o.Info().Tag, func(w io.Writer) error {
		// Large pieces, and none of the ways of its own that a file has: they take small ones.
		if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{o}, make([]byte, fetchPiece)); err != nil {
			return fmt.Errorf("server: %s: %w", info.Key, err)
		}
		return nil
	}, func(path string) (err error) {
		m, err = symbols.Open(path)
		return err
	})
	return m, err
}
