package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"time"

	"github.com/callreel/callreel/symbols/server/storage"
)

// A lease is an object that says that a server makes a map, so that others wait rather than make it, too. It only saves work:
// maps are put by conditional writes, whoever makes them. It holds as long as it changes; whose server was killed is taken
// over by one that has seen it unchanged for leaseTime on its own clock, as clocks of machines differ.
type lease struct {
	storage storage.Storage
	key     string
	stop    context.CancelFunc
	ended   chan struct{}
}

const (
	leaseTime  = 15 * time.Second
	leaseRenew = leaseTime / 3
)

// watched is a lease of another server.
type watched struct {
	tag   string
	since time.Time
}

// tryLease takes the lease of an ID, and returns nil without an error if another server holds it.
func tryLease(ctx context.Context, s storage.Storage, id string, other *watched) (*lease, error) {
	at := key(id, kindLease)
	err := writeLease(ctx, s, at, "")
	if errors.Is(err, storage.ErrConflict) {
		info, statErr := s.Stat(ctx, at)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
			return nil, nil // given back just now
		case statErr != nil:
			return nil, statErr
		case info.Tag != other.tag:
			*other = watched{info.Tag, time.Now()}
			return nil, nil
		case time.Since(other.since) < leaseTime:
			return nil, nil
		}
		if err = writeLease(ctx, s, at, info.Tag); errors.Is(err, storage.ErrConflict) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	l := &lease{s, at, stop, make(chan struct{})}
	go l.renew(ctx)
	return l, nil
}

// writeLease writes a lease with a content that none has had.
func writeLease(ctx context.Context, s storage.Storage, at, replace string) error {
	t, err := s.Temp()
	if err != nil {
		return err
	}
	defer t.Close() // it was put, or is of no use
	if _, err := t.WriteString(rand.Text() + "\n"); err != nil {
		return err
	}
	return s.Put(ctx, at, t, storage.Meta{}, replace)
}

// renew changes the lease until it ends.
func (l *lease) renew(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := l.storage.Stat(ctx, l.key)
		if err == nil {
			err = writeLease(ctx, l.storage, l.key, info.Tag)
		}
		if errors.Is(err, storage.ErrConflict) || errors.Is(err, fs.ErrNotExist) {
			return // another has it: both make the map, one of them puts it
		}
	}
}

// release gives the lease back.
func (l *lease) release() error {
	l.stop()
	<-l.ended
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.storage.Remove(ctx, l.key)
}
