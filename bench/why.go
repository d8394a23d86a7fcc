package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/callreel/callreel/bench/causes"
)

const (
	whyRecorded = 2500 * time.Millisecond // of a program with a planted cause
	whyQuiet    = 1500 * time.Millisecond // of one without
	whySlowest  = 3                       // calls that why is asked about
	whyControls = 40                      // runs of programs without a cause
)

// whyCount adds up what the answers were worth.
type whyCount struct {
	plants, place, first, three, listed int
	controls, falseClaims               int
	readyOnly                           int // of falseClaims: they say no more than that others had the processor
	notJudged                           []string
}

// measureWhy asks callreel why about programs with a planted cause, and about some without. It prints each as it goes.
func measureWhy(ctx context.Context, c config) []row {
	var n whyCount
	// A request that stood because others had the processor is slow for that.
	back, err := comeFirst()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: not before others: %v\n", err)
	}
	defer back()
	built := map[string]error{}
	chosen := func(p causes.Plant) bool { return c.plants == nil || c.plants.MatchString(p.Name) }
	for _, p := range causes.All() {
		if ctx.Err() != nil || !chosen(p) {
			continue
		}
		// Once before, which builds it, so that each is recorded on a machine that does nothing else.
		if built[p.Name] = p.Build(ctx, c.dir); built[p.Name] != nil {
			n.notJudged = append(n.notJudged, p.Name)
			_, _ = fmt.Fprintf(os.Stdout, "%-42s n/a: %v\n", p.Name, firstLine(built[p.Name]))
			continue
		}
		n.judgePlant(os.Stdout, p.Name, runPlant(ctx, c, p, 1, whyRecorded))
	}
	controls := causes.Controls()
	for k := 0; k < whyControls && ctx.Err() == nil; k++ {
		p := controls[k%len(controls)]
		p.Name = fmt.Sprintf("control %d: %s", k+1, p.Name)
		if chosen(p) {
			n.judgeControl(os.Stdout, p.Name, runPlant(ctx, c, p, k+1, whyQuiet))
		}
	}
	return n.rows()
}

// plantRun is one run of a program.
type plantRun struct {
	causes.Verdict
	plant *causes.Plant
	log   causes.Log
	err   error
	took  time.Duration
}

// runPlant starts a program, records some of it, and asks why its slowest calls were slow.
func runPlant(ctx context.Context, c config, p causes.Plant, seed int, recorded time.Duration) (r plantRun) {
	r.plant = &p
	begin := time.Now()
	defer func() { r.took = time.Since(begin) }()
	if r.err = p.Missing(); r.err != nil {
		return r
	}
	i, err := p.Start(ctx, c.dir, seed)
	if err != nil {
		r.err = err
		return r
	}
	time.Sleep(100 * time.Millisecond) // what is only slow at the start
	reel := filepath.Join(c.dir, "why.reel")
	answer, err := recordAndAsk(ctx, c, &p, i.PID, reel, recorded)
	if err != nil {
		r.err = err
	}
	log, err := i.End()
	r.log, r.err = log, errors.Join(r.err, err)
	if c.reels != "" {
		r.err = errors.Join(r.err, os.Rename(reel, filepath.Join(c.reels, reelName(p.Name))))
	}
	if r.err == nil {
		r.Verdict = p.Judge(answer)
	}
	return r
}

func reelName(plant string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == ':' || r == ',' {
			return '-'
		}
		return r
	}, strings.ReplaceAll(plant, ": ", "-")) + ".reel"
}

func recordAndAsk(ctx context.Context, c config, p *causes.Plant, pid int, reel string, recorded time.Duration) (a causes.Answer, err error) {
	if _, err := callreelSays(ctx, c, "record", "-p", strconv.Itoa(pid), "-d", recorded.String(), "-o", reel, "--force", "--json"); err != nil {
		return a, err
	}
	said, err := callreelSays(ctx, c, "why", reel, "-f", p.Handler, "--slowest", strconv.Itoa(whySlowest), "--json")
	if err != nil {
		return a, err
	}
	return causes.ReadAnswer(said)
}

// callreelSays runs callreel and returns what it has written to stdout.
func callreelSays(ctx context.Context, c config, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.callreel, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it detaches
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("callreel %s: %w: %s", args[0], err, said)
	}
	return stdout.Bytes(), nil
}

func (n *whyCount) judgePlant(w io.Writer, name string, r plantRun) {
	said := r.Said
	mark := "WRONG"
	switch {
	case r.err != nil:
		mark, said = "n/a", firstLine(r.err)
	case r.Calls == 0 && !r.log.Holds():
		mark, said = "n/a", "no slow request came"
	case r.FirstRight():
		mark = "right"
	case r.ThreeRight():
		mark = "in 3"
	case said == "":
		said = "nothing"
	}
	if mark == "n/a" {
		n.notJudged = append(n.notJudged, name)
	} else {
		n.plants++
		n.place += count(2*r.Place > r.Calls)
		n.first += count(r.FirstRight())
		n.three += count(r.ThreeRight())
		n.listed += count(r.ListedRight())
	}
	_, _ = fmt.Fprintf(w, "%-42s %-5s %d of %d  %s\n%-42s       its own log: %s (%.1f s)\n", name, mark, r.First, r.Calls, said, "", logWords(r.log), r.took.Seconds())
}

func (n *whyCount) judgeControl(w io.Writer, name string, r plantRun) {
	if r.err != nil {
		n.notJudged = append(n.notJudged, name)
		_, _ = fmt.Fprintf(w, "%-42s n/a: %v\n", name, firstLine(r.err))
		return
	}
	n.controls++
	mark, said := "quiet", ""
	if r.Claims > 0 {
		n.falseClaims++
		n.readyOnly += count(r.Claims == r.ReadyClaims)
		mark, said = "CLAIM", r.Said
	}
	_, _ = fmt.Fprintf(w, "%-42s %-5s %s\n", name, mark, said)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// logWords is what the program says of its requests.
func logWords(l causes.Log) string {
	if l.Requests == 0 {
		return "none"
	}
	note := ""
	if !l.Holds() {
		note = ", NOT as planted"
	}
	return fmt.Sprintf("%d requests, half within %.2f ms, 99 %% within %.2f ms; %d slow ones, half within %.1f ms%s",
		l.Requests, l.P50us/1e3, l.P99us/1e3, l.Slow, l.SlowP50us/1e3, note)
}

func (n *whyCount) rows() []row {
	note := ""
	if len(n.notJudged) > 0 {
		note = fmt.Sprintf("not judged: %s", strings.Join(n.notJudged, "; "))
	}
	of := func(k, all int) string { return fmt.Sprintf("%d of %d", k, all) }
	return []row{
		{what: "why: the planted cause in first place", value: of(n.first, n.plants), ratio: share(n.first, n.plants), reach: "90 %", note: note},
		{what: "why: among the first three", value: of(n.three, n.plants), ratio: share(n.three, n.plants), reach: "98 %"},
		{what: "why: the same, or listed without a claim", value: of(n.listed, n.plants), ratio: share(n.listed, n.plants)},
		{what: "why: place, kind and state, whoever was waited for", value: of(n.place, n.plants), ratio: share(n.place, n.plants)},
		{what: "why: claims for slow calls of pure noise", value: of(n.falseClaims, n.controls), reach: "≤ 2 of 40",
			note: fmt.Sprintf("%d of them say no more than that others had the processor, which may be so", n.readyOnly)},
	}
}

// printTruths writes what is planted, and what has to be said, as JSON.
func printTruths(w io.Writer) error {
	type truth struct {
		Name    string `json:"name"`
		Handler string `json:"handler"`
		SlowNS  int64  `json:"slow_ns"`
		causes.Truth
	}
	var all []truth
	for _, p := range causes.All() {
		all = append(all, truth{p.Name, p.Handler, p.Slow.Nanoseconds(), p.Truth})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(all)
}
