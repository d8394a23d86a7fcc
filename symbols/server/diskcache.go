package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/internal/ownfolder"
	"github.com/callreel/callreel/symbols/server/storage"
)

// diskCache keeps maps as files, those that were used last, up to a size. A file's name has the tag of the object, so that
// it is never out of date. Servers on one machine may share a folder.
type diskCache struct {
	dir   string
	limit int64
	files *storage.Folder
	log   *slog.Logger

	keeping sync.WaitGroup

	mu   sync.Mutex
	size int64 // as it was counted last, and what has come since
}

func openDiskCache(dir string, limit int64, log *slog.Logger) (*diskCache, error) {
	if err := ownfolder.Check(dir); err != nil {
		return nil, fmt.Errorf("server: the cache: %w", err)
	}
	if err := os.MkdirAll(dir, outfile.PrivateFolder); err != nil {
		return nil, fmt.Errorf("server: the cache: %w", err)
	}
	files, err := storage.OpenFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("server: the cache: %w", err)
	}
	c := &diskCache{dir: dir, limit: limit, files: files, log: log}
	return c, c.trim()
}

// name is the file of a map.
func (c *diskCache) name(id, tag string) string {
	return id[:2] + "/" + id[2:] + "." + tag + symbolsExtension
}

const symbolsExtension = ".symmap"

// path is where a map is, "" if it isn't.
func (c *diskCache) path(id, tag string) string {
	path := filepath.Join(c.dir, filepath.FromSlash(c.name(id, tag)))
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // it was used
	return path
}

// put keeps what write writes, after use was called with the path of a file of that. It is kept in the background: who waits for
// the bytes need not wait for the disk.
func (c *diskCache) put(id, tag string, write func(io.Writer) error, use func(path string) error) error {
	t, err := c.files.Temp()
	if err != nil {
		return err
	}
	if err = write(t); err == nil {
		err = use(t.Path())
	}
	if err != nil {
		return errors.Join(err, t.Close())
	}
	c.keeping.Go(func() {
		defer t.Close() // it was put, or is of no use
		if err := c.keep(id, tag, t); err != nil {
			c.log.Warn("keeping a map on the disk", "id", id, "error", err)
		}
	})
	return nil
}

// keep gives what was written its name.
func (c *diskCache) keep(id, tag string, t *storage.Temp) error {
	size, err := t.Size()
	if err != nil {
		return err
	}
	err = c.files.Put(context.Background(), c.name(id, tag), t, storage.Meta{}, "")
	if errors.Is(err, storage.ErrConflict) {
		return nil // another server was faster
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.size += size
	full := c.size > c.limit
	c.mu.Unlock()
	if full {
		return c.trim()
	}
	return nil
}

// close waits until all is kept.
func (c *diskCache) close() { c.keeping.Wait() }

// trim removes what was used longest ago, to nine tenths of the limit. Maps that are open stay readable.
func (c *diskCache) trim() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []storage.Info
	c.size = 0
	if err := c.files.List(context.Background(), "", func(o storage.Info) error {
		all = append(all, o)
		c.size += o.Size
		return nil
	}); err != nil {
		return err
	}
	if c.size <= c.limit {
		return nil
	}
	slices.SortFunc(all, func(a, b storage.Info) int { return cmp.Compare(a.Modified.UnixNano(), b.Modified.UnixNano()) })
	for _, o := range all[:max(len(all)-1, 0)] { // the newest is the one that was put just now
		if c.size <= c.limit/10*9 {
			break
		}
		if err := c.files.Remove(context.Background(), o.Key); err != nil && !os.IsNotExist(err) {
			return err
		}
		c.size -= o.Size
	}
	return nil
}
