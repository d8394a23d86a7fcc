package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// slowEvery is one in how many requests is slow while a recorder is armed for long.
const slowEvery = 100_000

// aMinute is what a dump has at least that has a minute.
const aMinute = 59 * time.Second

// slowRequest keeps redis busy for some tens of milliseconds.
const slowRequest = "EVAL \"local i=0 while i<5000000 do i=i+1 end return 1\" 0\r\n"

// armedLong is what came of a recorder that was armed for long.
type armedLong struct {
	requests, slow int
	took           []time.Duration // of slow requests
	memory         []int64         // of the recorder, once a minute, in bytes
	cpu            time.Duration   // of the recorder
	dumps, whole   int             // dumps, and those that have a minute, of which nothing is missing
	held           []time.Duration // what dumps have
}

// runAlways arms a recorder on redis for a time, with a budget and a minute to be kept, and holds its dumps against the requests that were slow.
func runAlways(ctx context.Context, c config, d time.Duration) (err error) {
	s, err := startRedis(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	dumps := filepath.Join(c.dir, "dumps")
	cmd := exec.CommandContext(ctx, c.callreel, "record", "-p", strconv.Itoa(s.pid), "--when", "call > 10ms", "--keep", "60s", "--memory", "256M", "--budget", "2%",
		"--max", "100000", "--json", "-o", dumps)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	time.Sleep(budgetSettles)
	a := &armedLong{}
	workErr := a.work(ctx, s, cmd.Process.Pid, d)
	a.cpu, _ = processCPU(cmd.Process.Pid)
	if err := errors.Join(workErr, cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
		return fmt.Errorf("callreel record: %w: %s", err, stderr.String())
	}
	if err := a.judge(ctx, c, dumps); err != nil {
		return err
	}
	fmt.Printf("%d requests in %v, %d of them slow; %d dumps for them, %d with the minute before\n", a.requests, d, a.slow, a.dumps, a.whole)
	fmt.Printf("they have %v\n", a.held)
	fmt.Printf("recorder: %.3f of a core; its memory in MiB, by minute: %v\n", a.cpu.Seconds()/d.Seconds(), inMiB(a.memory))
	fmt.Printf("%s\n%s\n", stderr.String(), stdout.String())
	if a.dumps < a.slow {
		return fmt.Errorf("%d slow requests have no dump", a.slow-a.dumps)
	}
	return nil
}

func inMiB(list []int64) (mib []int64) {
	for _, n := range list {
		mib = append(mib, n>>20)
	}
	return mib
}

// work asks for some thousand things a second.
func (a *armedLong) work(ctx context.Context, s *redisServer, recorder int, d time.Duration) error {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", s.port))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	next := rand.IntN(slowEvery)
	minute := time.Now()
	for start := time.Now(); time.Since(start) < d && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		key := a.requests % 5000
		ask := fmt.Sprintf("SET k%d v%d\r\nGET k%d\r\nINCR c%d\r\nLPUSH l%d x\r\nLTRIM l%d 0 20\r\n", key, a.requests, key, key%50, key%100, key%100)
		if err := answers(conn, in, ask, 5); err != nil {
			return err
		}
		if a.requests += 5; a.requests >= next {
			began := time.Now()
			if err := answers(conn, in, slowRequest, 1); err != nil {
				return err
			}
			a.slow++
			a.took = append(a.took, time.Since(began))
			next = (next/slowEvery+1)*slowEvery + rand.IntN(slowEvery)
		}
		if time.Since(minute) >= time.Minute {
			minute = time.Now()
			resident, err := residentOf(recorder)
			if err != nil {
				return err
			}
			a.memory = append(a.memory, resident)
		}
	}
	return nil
}

// answers sends requests and reads so many answers, none of them an array.
func answers(conn net.Conn, in *bufio.Reader, ask string, n int) error {
	if _, err := io.WriteString(conn, ask); err != nil {
		return err
	}
	for range n {
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(line, "-"):
			return fmt.Errorf("redis: %s", strings.TrimSpace(line))
		case strings.HasPrefix(line, "$") && line != "$-1\r\n":
			if _, err := in.ReadString('\n'); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge reads the dumps that triggers made.
func (a *armedLong) judge(ctx context.Context, c config, dir string) error {
	list, err := filepath.Glob(filepath.Join(dir, "slow-*.reel"))
	if err != nil {
		return err
	}
	for _, path := range list {
		out, err := exec.CommandContext(ctx, c.callreel, "report", "--json", path).Output()
		if err != nil {
			return fmt.Errorf("callreel report %s: %w", path, err)
		}
		var r struct {
			Window  time.Duration `json:"window_ns"`
			Missing []any         `json:"missing"`
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		a.dumps++
		if len(r.Missing) == 0 && r.Window >= aMinute {
			a.whole++
		}
		if len(r.Missing) > 0 {
			fmt.Printf("%s: missing %v\n", filepath.Base(path), r.Missing)
		}
		a.held = append(a.held, r.Window.Round(time.Second))
	}
	return nil
}
