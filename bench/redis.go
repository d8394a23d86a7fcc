package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/callreel/callreel/bench/programs"
)

// redisServer is a redis-server on a loopback port, perhaps under a peer.
type redisServer struct {
	cmd  *exec.Cmd
	port string
	pid  int // of redis-server itself
}

// startRedis runs redis-server by wrap, which may put a tracer before it, and
// returns when it answers.
func startRedis(ctx context.Context, c config, wrap ...string) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	port, err := programs.FreePort()
	if err != nil {
		return nil, err
	}
	words := append(wrap, path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", c.dir)
	s := &redisServer{port: port, cmd: exec.CommandContext(ctx, words[0], words[1:]...)}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(20 * time.Millisecond) {
		info, err := s.info("process_id")
		if err != nil {
			continue
		}
		if s.pid, err = strconv.Atoi(info); err != nil {
			return nil, err
		}
		return s, s.fill(ctx)
	}
	return nil, errors.Join(errors.New("redis-server does not answer"), s.cmd.Process.Kill(), s.cmd.Wait())
}

// keys is how many there are to get.
const keys = "10000"

// fill makes the keys that get asks for, so that most GETs find something.
func (s *redisServer) fill(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-p", s.port, "-t", "set", "-n", "30000", "-r", keys, "-P", "16", "-q")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("redis-benchmark: %w", err)
	}
	return nil
}

// info returns one field of INFO.
func (s *redisServer) info(field string) (string, error) {
	out, err := exec.Command("redis-cli", "-p", s.port, "INFO", "server").Output()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("redis-cli INFO: no %s", field)
}

// get returns how many GETs a second redis-benchmark made, and the CPU time in
// nanoseconds that the server's main thread spent on each.
func (s *redisServer) get(ctx context.Context, requests, pipeline int) (perSecond, cpu float64, err error) {
	before, err := mainThreadCPU(s.pid)
	if err != nil {
		return 0, 0, err
	}
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-p", s.port, "-t", "get", "-n", strconv.Itoa(requests),
		"-P", strconv.Itoa(pipeline), "-c", "50", "-r", keys, "--csv").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	after, err := mainThreadCPU(s.pid)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(out)) {
		if cells := strings.Split(strings.ReplaceAll(line, `"`, ""), ","); len(cells) > 1 && cells[0] == "GET" {
			perSecond, err = strconv.ParseFloat(cells[1], 64)
			return perSecond, (after - before) / float64(requests), err
		}
	}
	return 0, 0, errors.New("redis-benchmark: no GET line")
}

// mainThreadCPU returns nanoseconds on a CPU, from the scheduler's accounting.
func mainThreadCPU(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(data), " ")
	return strconv.ParseFloat(first, 64)
}

// end asks redis-server itself to end, so that a tracer before it can write
// what it has.
func (s *redisServer) end() error {
	process, err := os.FindProcess(s.pid)
	if err != nil {
		return err
	}
	// Its exit code, or a tracer's, says nothing about the measurement.
	err = process.Signal(os.Interrupt)
	ended := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
		return err
	case <-time.After(30 * time.Second):
		return errors.Join(err, s.cmd.Process.Kill())
	}
}

// throughput holds one figure a round.
type throughput struct {
	perSecond, cpu []float64
	err            error
}

func (t *throughput) round(ctx context.Context, s *redisServer, requests, pipeline int) {
	if t.err != nil {
		return
	}
	perSecond, cpu, err := s.get(ctx, requests, pipeline)
	t.err = err
	t.perSecond, t.cpu = append(t.perSecond, perSecond), append(t.cpu, cpu)
}

func measureRedis(ctx context.Context, c config) []row {
	rows := redisRows(ctx, c, "redis GET", c.requests, 1, "≥ 0.85")
	return append(rows, redisRows(ctx, c, "redis GET, 16 in a pipeline", 4*c.requests, 16, "")...)
}

func redisRows(ctx context.Context, c config, what string, requests, pipeline int, reach string) []row {
	s, err := startRedis(ctx, c)
	if err != nil {
		return []row{missing(what, reach, err)}
	}
	var plain, ours, theirs throughput
	var summaries []summary
	for range c.rounds {
		plain.round(ctx, s, requests, pipeline)
		if ours.err == nil {
			summaries = append(summaries, oursRound(ctx, c, s, requests, pipeline, &ours))
		}
		if theirs.err == nil {
			uftraceRound(ctx, c, requests, pipeline, &theirs)
		}
	}
	if err := s.end(); err != nil && plain.err == nil {
		plain.err = err
	}
	if plain.err != nil {
		return []row{missing(what, reach, plain.err)}
	}
	return []row{
		{what: what + ", untraced", value: perSecond(median(plain.perSecond)), ratio: "1.00"},
		ours.row(what+", everything traced by callreel", reach, &plain, droppedNote(summaries)),
		theirs.row(what+", uftrace -P .", "", &plain, ""),
	}
}

func (t *throughput) row(what, reach string, plain *throughput, note string) row {
	if t.err != nil {
		return missing(what, reach, t.err)
	}
	cpu := fmt.Sprintf("CPU of a request × %.2f", medianRatio(t.cpu, plain.cpu))
	if note != "" {
		cpu += ", " + note
	}
	return row{
		what: what, value: perSecond(median(t.perSecond)), reach: reach, note: cpu,
		ratio: fmt.Sprintf("%.2f", medianRatio(t.perSecond, plain.perSecond)),
	}
}

func perSecond(v float64) string { return fmt.Sprintf("%.0f /s", v) }

// oursRound traces everything in redis-server and its libraries.
func oursRound(ctx context.Context, c config, s *redisServer, requests, pipeline int, t *throughput) summary {
	r, err := startRecording(ctx, c, s.pid)
	if err != nil {
		t.err = err
		return summary{}
	}
	t.round(ctx, s, requests, pipeline)
	sum, err := r.stop()
	if t.err == nil {
		t.err = err
	}
	return sum
}

// uftraceRound needs a server of its own: uftrace cannot attach.
func uftraceRound(ctx context.Context, c config, requests, pipeline int, t *throughput) {
	if _, err := exec.LookPath("uftrace"); err != nil {
		t.err = err
		return
	}
	dir := filepath.Join(c.dir, "uftrace-redis")
	s, err := startRedis(ctx, c, "uftrace", "record", "--no-libcall", "--no-event", "-P", ".", "-d", dir)
	if err != nil {
		t.err = err
		return
	}
	t.round(ctx, s, requests, pipeline)
	if err := errors.Join(s.end(), os.RemoveAll(dir), os.RemoveAll(dir+".old")); t.err == nil {
		t.err = err
	}
}
