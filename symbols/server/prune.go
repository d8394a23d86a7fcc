package server

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/symbols/server/storage"
)

// PruneOptions say what of a storage goes.
type PruneOptions struct {
	MaxAge  time.Duration // IDs whose newest file is older go; 0 for none
	MaxSize int64         // the oldest go until no more than so many bytes are left; 0 for any
	DryRun  bool          // nothing is removed
}

// Pruned is what went, and what is left.
type Pruned struct {
	IDs       int   `json:"ids"`
	Files     int   `json:"files"`
	Bytes     int64 `json:"bytes"`
	LeftIDs   int   `json:"left_ids"`
	LeftBytes int64 `json:"left_bytes"`
}

// storedID is all that a storage has of an ID.
type storedID struct {
	newest time.Time
	size   int64
	keys   []string
}

// Prune removes the symbols of IDs from a storage, all files of one together: the file from which a map is made again is never
// kept without those that belong to it. What isn't of an ID stays. Servers may be using the storage.
func Prune(ctx context.Context, s storage.Storage, opt PruneOptions) (*Pruned, error) {
	ids := map[string]*storedID{}
	if err := s.List(ctx, "", func(o storage.Info) error {
		id, ok := idOfKey(o.Key)
		if !ok {
			return nil
		}
		of := ids[id]
		if of == nil {
			of = &storedID{}
			ids[id] = of
		}
		if o.Modified.After(of.newest) {
			of.newest = o.Modified
		}
		of.size += o.Size
		of.keys = append(of.keys, o.Key)
		return nil
	}); err != nil {
		return nil, err
	}
	var all []*storedID
	p := &Pruned{}
	for _, of := range ids {
		all = append(all, of)
		p.LeftIDs++
		p.LeftBytes += of.size
	}
	slices.SortFunc(all, func(a, b *storedID) int { return a.newest.Compare(b.newest) })
	now := time.Now()
	var errs []error
	for _, of := range all {
		old := opt.MaxAge > 0 && now.Sub(of.newest) > opt.MaxAge
		if !old && (opt.MaxSize <= 0 || p.LeftBytes <= opt.MaxSize) {
			break // the next are newer
		}
		if !opt.DryRun {
			// Maps first: without them nothing is wrong if the rest stays.
			slices.SortFunc(of.keys, func(a, b string) int {
				return -cmp.Compare(strings.Count(a, symbolsExtension), strings.Count(b, symbolsExtension))
			})
			if err := removeAll(ctx, s, of.keys); err != nil {
				errs = append(errs, err)
				if ctx.Err() != nil {
					break
				}
				continue
			}
		}
		p.IDs++
		p.Files += len(of.keys)
		p.Bytes += of.size
		p.LeftIDs--
		p.LeftBytes -= of.size
	}
	return p, errors.Join(errs...)
}

func removeAll(ctx context.Context, s storage.Storage, keys []string) error {
	for _, at := range keys {
		if err := s.Remove(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// idOfKey is the ID whose file a key is of.
func idOfKey(at string) (id string, ok bool) {
	start, rest, ok := strings.Cut(at, "/")
	if !ok || len(start) != 2 {
		return "", false
	}
	rest, _, ok = strings.Cut(rest, ".")
	id = start + rest
	if !ok || len(id) > maxID {
		return "", false
	}
	_, err := hex.DecodeString(id)
	return id, err == nil && id == strings.ToLower(id)
}
