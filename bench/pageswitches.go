package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// switchesRow says what the states of threads cost a frame: the page of a reel with as many switches as views are measured with, and of the
// same without, by turns, as a machine isn't always as fast.
func switchesRow(ctx context.Context, c config) row {
	r := row{what: fmt.Sprintf("page of %d M events: what the states of threads cost a frame", viewEvents/1_000_000), reach: "≤ 5 %"}
	with, without, err := compareSwitches(ctx, c)
	if err != nil {
		return missing(r.what, r.reach, err)
	}
	a, b := median(with.Work), median(without.Work)
	r.value = fmt.Sprintf("%+.1f %%", 100*(a/b-1))
	r.note = fmt.Sprintf("%d M switches, median; with them %s, without %s; drawing %s and %s; by turns, %d rounds",
		viewEvents/viewSwitches/1_000_000, spread(with.Work), spread(without.Work), spread(with.Draw), spread(without.Draw), c.rounds)
	return r
}

// compareSwitches has pages of both reels move, one after the other in each round.
func compareSwitches(ctx context.Context, c config) (with, without frames, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	all := []struct {
		path     string
		switches uint64
		frames   *frames
	}{{filepath.Join(c.dir, "switches.reel"), viewEvents / viewSwitches, &with}, {filepath.Join(c.dir, "still.reel"), 0, &without}}
	for _, x := range all {
		defer func() { err = errors.Join(err, os.Remove(x.path)) }()
		if err := writeIndexed(ctx, x.path, viewEvents, x.switches, 0); err != nil {
			return with, without, err
		}
	}
	browser, end, err := newBrowser(ctx)
	if err != nil {
		return with, without, err
	}
	defer end()
	for range c.rounds {
		for _, x := range all {
			f, err := movePage(ctx, c, browser, x.path)
			if err != nil {
				return with, without, err
			}
			x.frames.Work, x.frames.Draw = append(x.frames.Work, f.Work...), append(x.frames.Draw, f.Draw...)
		}
	}
	for _, f := range []*frames{&with, &without} {
		slices.Sort(f.Work)
		slices.Sort(f.Draw)
	}
	return with, without, nil
}

// movePage shows a reel in a tab of its own until all of it is there, and has it move.
func movePage(ctx context.Context, c config, browser context.Context, path string) (f frames, err error) {
	tab, end, err := newTab(browser)
	if err != nil {
		return f, err
	}
	defer end()
	server, err := startPageServer(ctx, c, path)
	if err != nil {
		return f, err
	}
	defer func() {
		_, endErr := server.end()
		err = errors.Join(err, endErr)
	}()
	if err := showUntil(tab, server.allRows(), drawn+restDrawn); err != nil {
		return f, err
	}
	return measureFrames(tab, moves)
}
