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

// Agent is how a server names itself when it asks others, which don't ask further then.
const Agent = "callreel-symbols-serve"

// fetchAll asks other servers for the files of an ID.
func (b *builder) fetchAll(ctx context.Context, id string) error {
	err := b.fetch(ctx, id, symbols.FetchDebugInfo)
	if also := b.fetch(ctx, id, symbols.FetchExecutable); err != nil && also != nil {
		return fmt.Errorf("server: no symbols for %s: %w", id, errors.Join(err, also))
	}
	return nil
}

// fetch asks other servers for a file and stores it.
func (b *builder) fetch(ctx context.Context, id, kind string) error {
	path, err := b.upstream.Fetch(ctx, id, kind) // which checks the ID
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("server: %s", err) // that it was removed meanwhile doesn't say that there is none
	}
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer from.Close() // only read from
	t, err := b.storage.Temp()
	if err != nil {
		return err
	}
	defer t.Close() // it was put, or is of no use
	if _, err := io.Copy(t, from); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	sum, err := sumOf(t)
	if err != nil {
		return err
	}
	err = b.storage.Put(ctx, key(id, kind), t, storage.Meta{SHA256: sum}, "")
	if errors.Is(err, storage.ErrConflict) {
		return nil
	}
	return err
}

// sumOf is the SHA-256 of a Temp.
func sumOf(t *storage.Temp) (string, error) {
	size, err := t.Size()
	if err != nil {
		return "", err
	}
	return storage.Sum(io.NewSectionReader(t, 0, size))
}
