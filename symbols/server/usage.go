package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/callreel/callreel/symbols/server/storage"
)

// usage is how full a storage is, as far as this server knows: it counts again from time to time, since others write, too.
type usage struct {
	storage storage.Storage
	quota   int64 // bytes; 0 for none

	mu      sync.Mutex
	counted time.Time
	size    int64
}

// recount is how long a count is good for.
const recount = 5 * time.Minute

// room says whether so many more bytes may be stored.
func (u *usage) room(ctx context.Context, size int64) error {
	if u.quota <= 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.counted) > recount {
		var total int64
		if err := u.storage.List(ctx, "", func(o storage.Info) error { total += o.Size; return nil }); err != nil {
			return err
		}
		u.size, u.counted = total, time.Now()
	}
	if u.size+size > u.quota {
		return refuse(http.StatusInsufficientStorage, "the quota of %d bytes is used up: %d are stored, %d more are too many; callreel symbols prune makes room", u.quota, u.size, size)
	}
	return nil
}

// add counts what was stored.
func (u *usage) add(size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.size += size
}
