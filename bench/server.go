package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// serverParts are what is measured of callreel symbols serve.
var serverParts = []struct {
	name string
	rows func(context.Context, config, *mappedStore) []row
}{
	{"frames", symbolizeRows},
	{"clients", clientRows},
	{"bucket", firstMapRows},
	{"debuginfod", func(ctx context.Context, c config, _ *mappedStore) []row { return debuginfodRows(ctx, c) }},
}

// measureServer measures callreel symbols serve.
func measureServer(ctx context.Context, c config) []row {
	mapped, err := mappedImages(ctx, c)
	if err != nil {
		return []row{missing("symbols serve", "", err)}
	}
	// A server that isn't given one makes a token, and says so.
	if err := os.Setenv("CALLREEL_PUSH_TOKEN", "token-of-the-bench"); err != nil {
		return []row{missing("symbols serve", "", err)}
	}
	var rows []row
	for _, p := range serverParts {
		if !strings.Contains(p.name, c.input) {
			continue
		}
		rows = append(rows, p.rows(ctx, c, mapped)...)
		if ctx.Err() != nil {
			return rows
		}
	}
	return rows
}

// A symbolServer is a callreel symbols serve that serves all without tokens.
type symbolServer struct {
	*conversation
	url string
}

func startSymbolServer(ctx context.Context, c config, store string, args ...string) (*symbolServer, error) {
	cache, err := os.MkdirTemp(c.dir, "serve-") // a server that has no maps of buckets
	if err != nil {
		return nil, err
	}
	t, err := converse(ctx, c.callreel, append([]string{"symbols", "serve", store, "--listen", "127.0.0.1:0", "--public", "all",
		"--cache-dir", cache, "--log-level", "warn"}, args...)...)
	if err != nil {
		return nil, err
	}
	s := &symbolServer{conversation: t}
	if s.url, err = t.hear(); err != nil {
		_ = t.kill() // it has said why
		return nil, err
	}
	return s, nil
}

// end ends the server.
func (s *symbolServer) end() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return s.conversation.end()
}

// peakMemory is the most that a process has had in memory, in bytes, files that it has mapped included.
func peakMemory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); n == 1 {
			return kilobytes * 1024, nil
		}
	}
	return 0, errors.New("the system does not say how much memory a process had")
}

// newClient makes an HTTP client of its own connections, which it keeps.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: time.Minute}).DialContext, MaxIdleConnsPerHost: 1000, DisableCompression: true, ResponseHeaderTimeout: time.Minute,
	}}
}

// post asks for the names of a capture, in a coding or "", and returns how long the answer is.
func post(ctx context.Context, client *http.Client, url, coding string, body []byte) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/symbolize", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if coding != "" {
		request.Header.Set("Accept-Encoding", coding)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() // all of it is read
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("symbolize: %s", answer.Status)
	}
	return n, err
}

// postAll posts all captures by a number of clients at once, and returns the bytes of the answers.
func postAll(ctx context.Context, client *http.Client, url, coding string, captures [][]byte, clients int) (int64, error) {
	var next, total atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for k := range clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(captures)) && errs[k] == nil; i = next.Add(1) - 1 {
				var n int64
				n, errs[k] = post(ctx, client, url, coding, captures[i])
				total.Add(n)
			}
		})
	}
	wg.Wait()
	return total.Load(), errors.Join(errs...)
}

// symbolizeRows posts batches of 1,000 frames to a server that has all maps in memory: first such whose addresses were never
// asked for, then the same again.
func symbolizeRows(ctx context.Context, c config, m *mappedStore) []row {
	const fresh, known = "symbolize, 1,000 frames a POST: addresses never asked before", "symbolize, 1,000 frames a POST: addresses asked before"
	const reach = "≥ 300,000 frames/s a core"
	fail := func(err error) []row { return []row{missing(known, reach, err)} }
	s, err := startSymbolServer(ctx, c, m.folder)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = s.kill() }()
	client := newClient()
	defer client.CloseIdleConnections()
	const batches, clients = 100, 4
	if _, err := postAll(ctx, client, s.url, "", m.captures(0, 1), 1); err != nil { // which opens the maps
		return fail(err)
	}
	var first, again, packed, large []float64
	var sent, packedSent float64
	for round := range c.rounds {
		captures := m.captures(uint64(round+1), batches)
		one := m.capturesOf(uint64(round+1), 1, batches*framesInBatch) // of as many frames
		for _, turn := range []struct {
			rates    *[]float64
			sent     *float64
			coding   string
			captures [][]byte
		}{{&first, &sent, "", captures}, {&again, &sent, "", captures}, {&packed, &packedSent, "zstd", captures}, {&large, &sent, "", one}} {
			before, err := processCPU(s.pid())
			if err != nil {
				return fail(err)
			}
			n, err := postAll(ctx, client, s.url, turn.coding, turn.captures, clients)
			if err != nil {
				return fail(err)
			}
			after, err := processCPU(s.pid())
			if err != nil {
				return fail(err)
			}
			*turn.rates = append(*turn.rates, batches*framesInBatch/(after-before).Seconds())
			*turn.sent = float64(n) / (batches * framesInBatch)
		}
	}
	calls, err := m.calls()
	if err != nil {
		return fail(err)
	}
	return []row{
		{
			what: known, value: thousandsOf(again) + " frames/CPU-s", reach: reach,
			note: fmt.Sprintf("%d images, %.1f functions and %.0f bytes of JSON a frame", len(m.images), calls, sent),
		},
		{what: fresh, value: thousandsOf(first) + " frames/CPU-s"},
		{what: known + ", answers in zstd", value: thousandsOf(packed) + " frames/CPU-s", note: fmt.Sprintf("%.0f bytes a frame", packedSent)},
		{what: "symbolize, 100,000 frames a POST, which wait in a file", value: thousandsOf(large) + " frames/CPU-s"},
	}
}

func thousandsOf(v []float64) string { return fmt.Sprintf("%.0f k", median(v)/1e3) }

// clientRows has 500 clients ask at once, each by connections of its own.
func clientRows(ctx context.Context, c config, m *mappedStore) []row {
	const what, clients, each = "symbolize, 500 clients at once", 500, 4
	const limit = 256 << 20
	reach := fmt.Sprintf("none refused, ≤ %.0f MB for maps and answers, and 0.5 MB a client", limit/1e6)
	var took, memory []float64
	for range c.rounds {
		s, err := startSymbolServer(ctx, c, m.folder, "--map-memory", fmt.Sprint(limit))
		if err != nil {
			return []row{missing(what, reach, err)}
		}
		captures := m.captures(1, clients)
		var wg sync.WaitGroup
		errs := make([]error, clients)
		start := time.Now()
		for k := range clients {
			wg.Go(func() {
				client := newClient()
				defer client.CloseIdleConnections()
				for range each {
					if _, err := post(ctx, client, s.url, "", captures[k]); err != nil {
						errs[k] = err
						return
					}
				}
			})
		}
		wg.Wait()
		took = append(took, time.Since(start).Seconds())
		peak, err := peakMemory(s.pid())
		memory = append(memory, peak)
		if err = errors.Join(append(errs, err, s.end())...); err != nil {
			return []row{missing(what, reach, err)}
		}
	}
	return []row{{
		what: what, value: fmt.Sprintf("all answered, peak RSS %s", megabytes(median(memory))), reach: reach,
		note: fmt.Sprintf("%d × 1,000 frames in %.1f s", clients*each, median(took)),
	}}
}
