package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callreel/callreel/bench/programs"
)

// soakers is how many programs are at work at a time.
const soakers = 3

// A soak lets recorders come, go and die in programs that work, and looks for harm.
type soak struct {
	c    config
	seed uint64
	mu   sync.Mutex
	told map[string]*soaked
	bad  []error
}

// soaked is what a program has been through.
type soaked struct {
	lives, attacks int
	portions       int
	outcomes       map[string]int
}

// runSoak keeps on for a time, or until ctx is done.
func runSoak(ctx context.Context, c config, d time.Duration, seed uint64) error {
	if seed == 0 {
		seed = rand.Uint64()
	}
	s := &soak{c: c, seed: seed, told: map[string]*soaked{}}
	var there []programs.Program
	for _, p := range programs.All() {
		if err := p.Missing(c.dir); err != nil {
			fmt.Printf("%s: left out, %v\n", p.Name, err)
		} else if slices.ContainsFunc(strings.Split(c.input, ","), func(part string) bool { return strings.Contains(p.Name, part) }) {
			there = append(there, p)
		}
	}
	fmt.Printf("seed %d, %v, %d programs\n", seed, d, len(there))
	next := make(chan int) // numbers of lives
	var all sync.WaitGroup
	for range min(soakers, len(there)) {
		all.Go(func() {
			for n := range next {
				s.life(ctx, n, there[n%len(there)])
			}
		})
	}
	over := time.After(d)
	for n, more := 0, len(there) > 0; more; n++ {
		select {
		case next <- n:
		case <-over:
			more = false
		case <-ctx.Done():
			more = false
		}
	}
	close(next)
	all.Wait()
	return s.sum(there)
}

// sum prints what there was, and returns an error if there was harm.
func (s *soak) sum(there []programs.Program) error {
	attacks := 0
	for _, p := range there {
		if t := s.told[p.Name]; t != nil {
			fmt.Printf("%-16s %3d lives, %4d attacks, %6d right answers; %v\n", p.Name, t.lives, t.attacks, t.portions, t.outcomes)
			attacks += t.attacks
		}
	}
	fmt.Printf("%d attacks, %d programs harmed\n", attacks, len(s.bad))
	return errors.Join(s.bad...)
}

// life is that of one instance of a program, from its start to its end.
func (s *soak) life(ctx context.Context, n int, p programs.Program) {
	random := rand.New(rand.NewPCG(s.seed, uint64(n)))
	a := &attacker{c: s.c, random: random, program: p, told: &soaked{outcomes: map[string]int{}}}
	started := time.Now()
	err := a.live(ctx, p, time.Duration(10+random.IntN(15))*time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.told[p.Name]
	if t == nil {
		t = &soaked{outcomes: map[string]int{}}
		s.told[p.Name] = t
	}
	t.lives++
	t.attacks += a.told.attacks
	t.portions += a.told.portions
	for what, times := range a.told.outcomes {
		t.outcomes[what] += times
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("life %d, %s: %w\n  it had been through:\n  %s", n, p.Name, err, strings.Join(a.history, "\n  "))
		s.bad = append(s.bad, err)
		fmt.Printf("%v\n", err)
		return
	}
	fmt.Fprintf(os.Stderr, "life %d, %s: %d attacks, %d answers in %v\n", n, p.Name, a.told.attacks, a.told.portions, time.Since(started).Round(time.Second))
}

// live starts a program, keeps it at work while it is attacked, and ends it.
func (a *attacker) live(ctx context.Context, p programs.Program, long time.Duration) error {
	i, err := p.Start(ctx, a.c.dir)
	if err != nil {
		return err
	}
	want, err := i.Work()
	if err != nil {
		i.Kill()
		return err
	}
	attacked, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() {
		defer stop() // of what use is it to attack then
		for attacked.Err() == nil {
			at := time.Now()
			got, err := i.Work()
			if err == nil && got != want {
				err = fmt.Errorf("it answered %q, and %q before", got, want)
			}
			if err != nil {
				worked <- err
				return
			}
			a.told.portions++
			if a.rest != nil {
				a.rest(time.Since(at))
			}
		}
		worked <- nil
	}()
	a.pid = i.PID
	next := a.next
	if next == nil {
		next = a.attack
	}
	for end := time.Now().Add(long); time.Now().Before(end) && attacked.Err() == nil && err == nil; {
		err = next(attacked)
		a.told.attacks++
	}
	stop()
	if err != nil && ctx.Err() == nil {
		// Whether it still works tells more.
		select {
		case err2 := <-worked:
			err = errors.Join(err, err2)
		case <-time.After(20 * time.Second):
			err = errors.Join(err, errors.New("and it doesn't answer"))
		}
		if a.c.keep {
			return fmt.Errorf("%w\n  process %d is kept", err, i.PID)
		}
		i.Kill()
		return err
	}
	select {
	case err = <-worked:
	case <-time.After(2 * time.Minute):
		err = errors.New("it doesn't answer any more")
	}
	if err == nil {
		err = a.detach() // from a recorder that was killed last
	}
	if err == nil {
		err = a.semaphores()
	}
	if err != nil {
		i.Kill()
		return err
	}
	return i.End()
}
