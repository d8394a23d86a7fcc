package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// A debugServer speaks the protocol of debuginfod.
type debugServer struct {
	name, url string
	pid       int
	end       func()
}

// debuginfodRows compares callreel symbols serve with Debian's debuginfod: both serve the same debug files, those of libc6-dbg and
// the largest of ceph-osd-dbg, in turns.
func debuginfodRows(ctx context.Context, c config) []row {
	const what = "debuginfod's protocol"
	fail := func(err error) []row { return []row{missing(what, "≥ debuginfod's", err)} }
	folder, ids, large, err := debugFiles(ctx, c)
	if err != nil {
		return fail(err)
	}
	ours, err := serveDebugFiles(ctx, c, folder)
	if err != nil {
		return fail(err)
	}
	defer ours.end()
	theirs, err := startDebuginfod(ctx, c, folder, append(ids, large))
	if err != nil {
		return fail(err)
	}
	defer theirs.end()
	var rows []row
	for _, load := range []debugLoad{
		{name: "small files, connections kept", clients: 16, kept: true, paths: debugPaths(ids, "debuginfo")},
		{name: "small files, a connection each", clients: 16, paths: debugPaths(ids, "debuginfo")},
		{name: "sections", clients: 16, kept: true, paths: debugPaths(ids, "section/.debug_line")},
		{name: "IDs that nobody has", clients: 16, kept: true, paths: unknownPaths(ids)},
		{name: "a file of " + fileSizeText(folder, large), clients: 2, kept: true, paths: debugPaths([]string{large}, "debuginfo")},
	} {
		if load.err = load.run(ctx, c, ours, theirs); load.err != nil {
			rows = append(rows, missing(what+", "+load.name, "", load.err))
			continue
		}
		rows = append(rows, load.rows(what)...)
	}
	for _, first := range []struct{ name, id string }{{"a small file", ids[0]}, {"a file of " + fileSizeText(folder, large), large}} {
		rows = append(rows, firstByteRow(ctx, c, what+", first byte of "+first.name, first.id, ours, theirs))
	}
	return rows
}

// debugFiles makes a folder of links to debug files.
func debugFiles(ctx context.Context, c config) (folder string, ids []string, large string, err error) {
	if _, err := libc(ctx, c); err != nil {
		return "", nil, "", err
	}
	big, err := cephOSD(ctx, c)
	if err != nil {
		return "", nil, "", err
	}
	dir, err := debianPackage(ctx, "libc6-dbg")
	if err != nil {
		return "", nil, "", err
	}
	list, err := filepath.Glob(filepath.Join(dir, "usr/lib/debug/.build-id/*/*.debug"))
	if err != nil {
		return "", nil, "", err
	}
	folder = filepath.Join(c.dir, "debug-files")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", nil, "", err
	}
	for _, path := range append(list, big) {
		id := filepath.Base(filepath.Dir(path)) + strings.TrimSuffix(filepath.Base(path), ".debug")
		if err := copyFile(path, filepath.Join(folder, id+".debug")); err != nil {
			return "", nil, "", err
		}
		const small = 128 << 10
		switch {
		case path == big:
			large = id
		case bytesOf(path) < small:
			ids = append(ids, id)
		}
	}
	return folder, ids, large, nil
}

// copyFile copies a file. A link would be to another file system, or a symbolic one, which debuginfod does not follow.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // only read from
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func fileSizeText(folder, id string) string { return fileSize(filepath.Join(folder, id+".debug")) }

// serveDebugFiles pushes the files to a server.
func serveDebugFiles(ctx context.Context, c config, folder string) (*debugServer, error) {
	s, err := startSymbolServer(ctx, c, filepath.Join(c.dir, "pushed"))
	if err != nil {
		return nil, err
	}
	if said, err := exec.CommandContext(ctx, c.callreel, "symbols", "push", folder, "--to", s.url).CombinedOutput(); err != nil {
		_ = s.kill()
		return nil, fmt.Errorf("symbols push: %w: %s", err, said)
	}
	return &debugServer{"callreel", s.url, s.pid(), func() { _ = s.kill() }}, nil
}

// startDebuginfod starts Debian's, and returns when it has all the files.
func startDebuginfod(ctx context.Context, c config, folder string, ids []string) (*debugServer, error) {
	program, err := realtest.Debuginfod.Find()
	if err != nil {
		return nil, err
	}
	port, err := realtest.FreePort()
	if err != nil {
		return nil, err
	}
	// Its own threads scan no more once it has all files.
	cmd := exec.CommandContext(ctx, program, "-F", "-d", filepath.Join(c.dir, "debuginfod.sqlite"), "-p", port, "-t", "0", "-g", "0", folder)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=", "HOME="+c.dir)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &debugServer{"debuginfod", "http://127.0.0.1:" + port, cmd.Process.Pid, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	client := newClient()
	defer client.CloseIdleConnections()
	for _, id := range ids {
		for {
			status, _, err := get(ctx, client, s.url+"/buildid/"+id+"/debuginfo")
			if err == nil && status == http.StatusOK {
				break
			}
			if ctx.Err() != nil {
				s.end()
				return nil, fmt.Errorf("debuginfod does not get to know %s: %w", id, context.Cause(ctx))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return s, nil
}

// get reads an answer and returns its length.
func get(ctx context.Context, client *http.Client, url string) (status int, n int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	n, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, n, errors.Join(err, answer.Body.Close())
}

func debugPaths(ids []string, what string) []string {
	var list []string
	for _, id := range ids {
		list = append(list, "/buildid/"+id+"/"+what)
	}
	return list
}

func unknownPaths(ids []string) []string {
	var list []string
	for _, id := range ids {
		list = append(list, "/buildid/"+id[:len(id)-8]+"00112233/debuginfo")
	}
	return list
}

// A debugLoad is requests that clients send to both servers, in turns.
type debugLoad struct {
	name    string
	clients int
	kept    bool // connections
	paths   []string
	err     error

	rates, cpu [2][]float64 // requests/s by the clock, and CPU seconds a request; of ours and theirs
}

func (l *debugLoad) run(ctx context.Context, c config, servers ...*debugServer) error {
	const lasts = time.Second
	for range c.rounds {
		var statuses [2]int
		for k, s := range servers {
			before, err := processCPU(s.pid)
			if err != nil {
				return err
			}
			start := time.Now()
			n, status, err := l.turn(ctx, s, lasts)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			took := time.Since(start)
			after, err := processCPU(s.pid)
			if err != nil {
				return err
			}
			statuses[k] = status
			l.rates[k] = append(l.rates[k], float64(n)/took.Seconds())
			l.cpu[k] = append(l.cpu[k], (after-before).Seconds()/float64(n))
		}
		if statuses[0] != statuses[1] {
			return fmt.Errorf("status %d against %d", statuses[0], statuses[1])
		}
	}
	return nil
}

// turn asks one server for a while and returns how many answers there were, and the status of the last.
func (l *debugLoad) turn(ctx context.Context, s *debugServer, lasts time.Duration) (n int64, status int, err error) {
	var count, next, last atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, l.clients)
	client := newClient()
	client.Transport.(*http.Transport).DisableKeepAlives = !l.kept
	defer client.CloseIdleConnections()
	for start, k := time.Now(), 0; k < l.clients; k++ {
		wg.Go(func() {
			for errs[k] == nil && time.Since(start) < lasts {
				var status int
				status, _, errs[k] = get(ctx, client, s.url+l.paths[int(next.Add(1))%len(l.paths)])
				last.Store(int64(status))
				count.Add(1)
			}
		})
	}
	wg.Wait()
	return count.Load(), int(last.Load()), errors.Join(errs...)
}

func (l *debugLoad) rows(what string) []row {
	return []row{{
		what: what + ", " + l.name, value: fmt.Sprintf("%.0f requests/s", median(l.rates[0])), ratio: ratioText(medianRatio(l.rates[0], l.rates[1])),
		reach: "≥ debuginfod's", note: fmt.Sprintf("debuginfod %.0f/s; CPU %.0f against %.0f µs a request, %.2f of it", median(l.rates[1]),
			median(l.cpu[0])*1e6, median(l.cpu[1])*1e6, medianRatio(l.cpu[0], l.cpu[1])),
	}}
}

// firstByteRow is the time until the first byte of a file is there, for one client alone.
func firstByteRow(ctx context.Context, c config, what, id string, servers ...*debugServer) row {
	const reach = "≤ debuginfod's"
	const asks = 40
	var took [2][]float64
	for range c.rounds {
		for k, s := range servers {
			var each []float64
			for range asks {
				d, err := firstByte(ctx, s.url+"/buildid/"+id+"/debuginfo")
				if err != nil {
					return missing(what, reach, err)
				}
				each = append(each, d.Seconds())
			}
			took[k] = append(took[k], median(each))
		}
	}
	return row{
		what: what, value: fmt.Sprintf("%.2f ms", median(took[0])*1e3), ratio: ratioText(medianRatio(took[0], took[1])), reach: reach,
		note: fmt.Sprintf("debuginfod %.2f ms, connecting included", median(took[1])*1e3),
	}
}

// firstByte connects, asks and reads one byte.
func firstByte(ctx context.Context, url string) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the rest isn't wanted
	client := newClient()
	defer client.CloseIdleConnections()
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var b [1]byte
	if _, err := io.ReadFull(answer.Body, b[:]); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}
