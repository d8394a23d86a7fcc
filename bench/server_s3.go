package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/symbols/server/storage"
)

// firstMapRows measures the first answer of servers that have to get the map out of a bucket, beside getting it and no more.
func firstMapRows(ctx context.Context, c config, m *mappedStore) []row {
	var rows []row
	bucket, end, err := fillBucket(ctx, c, m)
	if err != nil {
		return []row{missing("symbolize, first answer from a map in S3", "", err)}
	}
	defer end()
	for k := range m.images {
		rows = append(rows, firstMapRow(ctx, c, m, k, bucket))
	}
	return rows
}

// fillBucket starts an S3 service and puts the maps into its bucket.
func fillBucket(ctx context.Context, c config, m *mappedStore) (s storage.Storage, end func(), err error) {
	gateway, err := realtest.VersityGW.Find()
	if err != nil {
		return nil, nil, err
	}
	service, err := realtest.StartS3(ctx, gateway, filepath.Join(c.dir, "s3"))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			service.End()
		}
	}()
	for name, value := range service.Environment {
		if err := os.Setenv(name, value); err != nil { // for the servers, too
			return nil, nil, err
		}
	}
	if s, err = storage.Open("s3://"+service.Bucket+"/maps", c.dir); err != nil {
		return nil, nil, err
	}
	for _, im := range m.images {
		if err := putFile(ctx, s, mapKey(im.id), im.path); err != nil {
			return nil, nil, err
		}
	}
	return s, service.End, nil
}

func mapKey(id string) string { return id[:2] + "/" + id[2:] + ".symmap" }

func putFile(ctx context.Context, s storage.Storage, key, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() // only read from
	t, err := s.Temp()
	if err != nil {
		return err
	}
	defer t.Close() // it was put
	if _, err := io.Copy(t, in); err != nil {
		return err
	}
	return s.Put(ctx, key, t, storage.Meta{}, "")
}

// firstMapRow has a new server name 1,000 frames of one image in every round. It has got the map of another image before, so that
// it is connected.
func firstMapRow(ctx context.Context, c config, m *mappedStore, k int, bucket storage.Storage) row {
	im := &m.images[k]
	what, reach := "symbolize, first answer from a map in S3: "+im.name, "≤ 50 ms more than the transfer"
	only := &mappedStore{images: []mappedImage{*im}}
	other := &mappedStore{images: []mappedImage{m.images[(k+1)%len(m.images)]}}
	var bare, first, more, cpu []float64
	for round := range c.rounds {
		transfer, err := transferTime(ctx, bucket, mapKey(im.id))
		if err != nil {
			return missing(what, reach, err)
		}
		took, used, err := firstAnswer(ctx, c, bucket.String(), other.captures(uint64(round), 1)[0], only.captures(uint64(round), 1)[0])
		if err != nil {
			return missing(what, reach, err)
		}
		bare, first, more = append(bare, transfer.Seconds()), append(first, took.Seconds()), append(more, (took-transfer).Seconds())
		cpu = append(cpu, used.Seconds())
	}
	return row{
		what: what, value: fmt.Sprintf("%.1f ms more", median(more)*1e3), reach: reach,
		note: fmt.Sprintf("%.1f MB: transfer %.1f ms, answer to 1,000 frames %.1f ms; CPU of the server %.1f ms", bytesOf(im.path)/1e6, median(bare)*1e3, median(first)*1e3,
			median(cpu)*1e3),
	}
}

// transferTime is how long it takes to read an object.
func transferTime(ctx context.Context, s storage.Storage, key string) (time.Duration, error) {
	start := time.Now()
	o, err := s.Open(ctx, key)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, o)
	return time.Since(start), errors.Join(err, o.Close())
}

// firstAnswer is how long a new server takes to answer a capture, after it has answered another, and the processor time of that.
func firstAnswer(ctx context.Context, c config, store string, before, capture []byte) (took, cpu time.Duration, err error) {
	s, err := startSymbolServer(ctx, c, store)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	client := newClient()
	defer client.CloseIdleConnections()
	if _, err := post(ctx, client, s.url, "", before); err != nil {
		return 0, 0, err
	}
	used, err := processCPU(s.pid())
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if _, err := post(ctx, client, s.url, "", capture); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	now, err := processCPU(s.pid())
	return took, now - used, err
}
