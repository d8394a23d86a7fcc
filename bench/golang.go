package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// goCosts are ns a call of a Go function, one figure a round.
type goCosts struct {
	untraced, traced map[string][]float64 // by mode
	limit            []float64            // added, in C
	summaries        []summary
}

var goModes = []string{"leaf", "deep", "frame"}

func measureGo(ctx context.Context, c config) []row {
	what := map[string]string{
		"leaf":  "traced call of a Go function, leaf",
		"deep":  "traced call of a Go function under 8 untraced callers",
		"frame": "traced call of a Go function with a stack check",
	}
	k, err := goRounds(ctx, c)
	if err != nil {
		return []row{missing(what["leaf"], "", err)}
	}
	limit := median(k.limit)
	rows := []row{{what: "limit: 2 × (rdtsc + 16-byte store), in C", value: ns(limit), ratio: "1.00"}}
	for _, mode := range goModes {
		added := median(k.traced[mode]) - median(k.untraced[mode])
		r := row{what: what[mode], value: ns(added), ratio: ratio(added, limit), note: "untraced " + ns(median(k.untraced[mode]))}
		if note := droppedNote(k.summaries); note != "" {
			r.note += "; " + note
		}
		rows = append(rows, r)
	}
	return rows
}

// goRounds lets a Go program be recorded and not in every round.
func goRounds(ctx context.Context, c config) (k goCosts, err error) {
	k.untraced, k.traced = map[string][]float64{}, map[string][]float64{}
	path := filepath.Join(c.dir, "goleaf")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./"+filepath.Join("bench", "target", "goleaf"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return k, fmt.Errorf("go build: %w: %s", err, said)
	}
	in, err := converse(ctx, path)
	if err != nil {
		return k, err
	}
	golang := &leafTarget{in}
	defer func() { err = errors.Join(err, golang.end()) }()
	inC, err := startLeaf(ctx, c)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, inC.end()) }()
	for range c.rounds {
		limit, err1 := inC.measure("limit", c.calls)
		leaf, err2 := inC.measure("leaf", c.calls)
		if err := errors.Join(err1, err2, golang.modes(k.untraced, c.calls)); err != nil {
			return k, err
		}
		k.limit = append(k.limit, limit-leaf)
		r, err := startRecording(ctx, c, golang.pid(), "-f", "main.leaf", "-f", "main.frame")
		if err != nil {
			return k, err
		}
		err = golang.modes(k.traced, c.calls)
		s, stopErr := r.stop()
		if err := errors.Join(err, stopErr); err != nil {
			return k, err
		}
		if s.Events+s.Dropped == 0 {
			return k, errors.New("nothing was traced")
		}
		k.summaries = append(k.summaries, s)
	}
	return k, nil
}

// modes measures each mode once.
func (t *leafTarget) modes(to map[string][]float64, calls int64) error {
	for _, mode := range goModes {
		v, err := t.measure(mode, calls)
		if err != nil {
			return err
		}
		to[mode] = append(to[mode], v)
	}
	return nil
}
