package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callreel/callreel/bench/programs"
)

// budgetSoaked are the programs that a soak of budgets takes, one after the other.
var budgetSoaked = []string{"redis", "postgres", "node", "python3", "C++ that throws"}

// kindOfWork is for how long a program's work is of one kind: without a pause, or with one five times as long as each portion.
const kindOfWork = time.Minute

// soakBudget lets recorders with a budget come, go and die in some programs whose load changes, and looks for harm. Between them top says each
// second what its budget comes to.
func soakBudget(ctx context.Context, c config, d time.Duration, seed uint64) error {
	if seed == 0 {
		seed = rand.Uint64()
	}
	fmt.Printf("seed %d\n", seed)
	var errs []error
	seconds, within := 0, 0
	all, names := programs.All(), slices.Clone(budgetSoaked)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, c.input) })
	for n, name := range names {
		i := slices.IndexFunc(all, func(p programs.Program) bool { return p.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no program %s", name)
		}
		a := &attacker{c: c, random: rand.New(rand.NewPCG(seed, uint64(n))), program: all[i], told: &soaked{outcomes: map[string]int{}}}
		b := &budgetSoak{attacker: a, over: map[int][]float64{}}
		began := time.Now()
		a.next, a.rest = b.next, func(took time.Duration) {
			if time.Since(began)/kindOfWork%2 == 1 {
				time.Sleep(5 * took)
			}
		}
		err := a.live(ctx, a.program, d/time.Duration(len(names)))
		fmt.Printf("%-10s %4d attacks, %6d right answers; %d of %d seconds within the budget, above it by second %v; %v\n", name, a.told.attacks, a.told.portions, b.within, b.seconds, b.over, a.told.outcomes)
		seconds, within = seconds+b.seconds, within+b.within
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s: %w\n  it had been through:\n  %v", name, err, a.history)
			fmt.Println(err)
			errs = append(errs, err)
		}
	}
	fmt.Printf("%d of %d seconds within the budget and its uncertainty (%s), %d programs harmed\n", within, seconds, share(within, seconds), len(errs))
	return errors.Join(errs...)
}

// budgetSoak is one program's.
type budgetSoak struct {
	*attacker
	seconds, within int // of top, the first two left out
	// over are those that were above it, by the second of top: how many times what was to be spent was.
	over map[int][]float64
}

// next lets one recorder come, or top.
func (b *budgetSoak) next(ctx context.Context) error {
	if b.chance(4) {
		return b.top(ctx)
	}
	return b.attack(ctx)
}

// flags are what a recorder is told.
func (b *budgetSoak) flags() []string {
	flags := []string{"--budget", []string{"0.5%", "2%", "10%"}[b.random.IntN(3)]}
	if b.chance(3) {
		flags = append(flags, "--count-off")
	}
	return flags
}

// attack lets one recorder come, which ends or is killed while sites are taken out and put back.
func (b *budgetSoak) attack(ctx context.Context) error {
	file := reelOf(b.c, b.pid)
	args := []string{"record", "--json", "--force", "-o", file, "-p", strconv.Itoa(b.pid)}
	how := []string{"end", "kill", "kill", "kill and go"}[b.random.IntN(4)]
	armed := b.chance(3)
	if armed {
		args = []string{"record", "--json", "-o", b.c.dir + "/soak-dumps", "-p", strconv.Itoa(b.pid), "--when", "malloc > 500ms", "--keep", "10s"}
	}
	args = append(args, b.flags()...)
	b.history = append(b.history, how+": "+fmt.Sprint(args))
	r, err := b.start(args...)
	if err != nil {
		return err
	}
	if !armed {
		r.records(ctx, file)
	}
	r.pause(ctx, b.upTo([]time.Duration{300 * time.Millisecond, 3 * time.Second}[b.random.IntN(2)]))
	if how == "end" {
		_ = r.cmd.Process.Signal(os.Interrupt) // it may have ended
	} else {
		_ = r.cmd.Process.Kill()
	}
	if err := r.wait(); err != nil {
		return err
	}
	b.told.outcomes[how]++
	switch {
	case !r.killed() && r.cmd.ProcessState.ExitCode() == 0:
		return b.untouched()
	case how == "kill and go":
		return nil // what comes next has to cope
	}
	return b.detach()
}

// top lets top say each second what recording costs by its own measure.
func (b *budgetSoak) top(ctx context.Context) error {
	args := []string{"top", "-p", strconv.Itoa(b.pid), "--budget", "5%", "--json", "--limit", "1", "-d", "15s"}
	b.history = append(b.history, fmt.Sprint(args))
	r, err := b.start(args...)
	if err != nil {
		return err
	}
	if err := r.wait(); err != nil || ctx.Err() != nil {
		return err
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		return r.failed("exit code %d", code)
	}
	type second struct {
		Budget *struct {
			Wanted      float64  `json:"wanted"`
			Measured    *float64 `json:"measured"`
			Uncertainty *float64 `json:"uncertainty"`
		} `json:"budget"`
	}
	n := 0
	for d := json.NewDecoder(bufio.NewReader(bytes.NewReader(r.stdout.Bytes()))); ; {
		var s second
		if d.Decode(&s) != nil {
			break
		}
		if n++; n <= 2 || s.Budget == nil || s.Budget.Measured == nil {
			continue
		}
		most := s.Budget.Wanted
		if u := s.Budget.Uncertainty; u != nil {
			most += *u
		}
		b.seconds++
		if *s.Budget.Measured <= most {
			b.within++
		} else {
			b.over[n] = append(b.over[n], math.Round(*s.Budget.Measured/most*100)/100)
		}
	}
	b.told.outcomes["top"]++
	return b.untouched()
}
