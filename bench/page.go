package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// measurePage measures callreel view as a browser has it, on large reels: the first picture, frames while panning and zooming
// over all rows of eight threads 40 deep, 1,800 pixels wide, and the memory of both sides.
func measurePage(ctx context.Context, c config) []row {
	rows := pageRows(ctx, c, viewEvents, "≤ 1 s")
	if c.billion {
		rows = append(rows, pageRows(ctx, c, 1_000_000_000, "≤ 3 s")...)
	}
	return rows
}

func pageRows(ctx context.Context, c config, events uint64, reach string) []row {
	what := fmt.Sprintf("page of %d M events", events/1_000_000)
	p, err := runPage(ctx, c, events)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	ms := func(v []float64, share float64) float64 { return v[min(len(v)-1, int(share*float64(len(v))))] }
	return []row{
		{
			what: what + ": first picture", value: fmt.Sprintf("%.2f s", median(p.first)), reach: reach,
			note: fmt.Sprintf("after the command, in a browser that runs, %.2f to %.2f; the browser had taken %.2f s to start", slices.Min(p.first), slices.Max(p.first), p.browser.Seconds()),
		},
		{what: what + ": drawing a frame", value: fmt.Sprintf("%.1f ms, p99 %.1f", ms(p.Work, 0.5), ms(p.Work, 0.99)), reach: "≤ 16 ms", note: fmt.Sprintf("%d frames, %d bars in the largest", len(p.Work), p.Bars)},
		{what: what + ": frame to frame", value: fmt.Sprintf("%.1f ms, p99 %.1f", ms(p.Between, 0.5), ms(p.Between, 0.99)), note: "without a graphics card, at 60 Hz"},
		{what: what + ": JavaScript's memory", value: fmt.Sprintf("%.0f MB", p.Heap/1e6), reach: "≤ 300 MB", note: fmt.Sprintf("its process %.0f MB", p.renderer/1e6)},
		{what: what + ": the server's memory beyond the file", value: fmt.Sprintf("%.0f MB", p.server/1e6), reach: "≤ 1000 MB", note: "the most, while panning and zooming"},
	}
}

type pageFigures struct {
	first    []float64     // seconds, of each round
	browser  time.Duration // its start
	Work     []float64     // ms in which a frame was made, sorted
	Between  []float64     // ms from frame to frame, sorted
	Bars     int
	Heap     float64 // bytes
	renderer float64 // bytes
	server   float64 // bytes
}

// moves pans and zooms as a held key does, in every frame, all over the recording, and tells of the frames.
const moves = `(async () => {
	const t = window.callreel.timeline(), between = [], bars = [];
	const frame = () => new Promise(requestAnimationFrame);
	t.frameTimes = [];
	let last = await frame();
	for (let round = 0; round < 4; round++) {
		for (let i = 0; i < 100; i++) {
			const x = t.size.width * (0.2 + 0.6 * ((i * 7 + round * 31) % 100) / 100);
			if (i < 40) t.zoomBy(0.87, x);
			else if (i < 60) t.panBy(0.06);
			else t.zoomBy(1 / 0.85, x);
			const now = await frame();
			between.push(now - last);
			last = now;
			bars.push(Number(t.canvas.dataset.bars));
		}
	}
	const sorted = a => a.sort((x, y) => x - y);
	return { Work: sorted(t.frameTimes), Between: sorted(between), Bars: Math.max(...bars), Heap: performance.memory.usedJSHeapSize };
})()`

func runPage(ctx context.Context, c config, events uint64) (p pageFigures, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	path := filepath.Join(c.dir, "page.reel")
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := writeIndexed(ctx, path, events); err != nil {
		return p, err
	}
	start := time.Now()
	tab, end, err := newBrowser(ctx)
	if err != nil {
		return p, err
	}
	defer end()
	p.browser = time.Since(start)
	for range c.rounds {
		if err := p.round(ctx, c, tab, path); err != nil {
			return p, err
		}
	}
	return p, nil
}

// round has the reel served and shown anew. Panning and zooming are the last round's.
func (p *pageFigures) round(ctx context.Context, c config, browser context.Context, path string) (err error) {
	tab, end, err := newTab(browser)
	if err != nil {
		return err
	}
	defer end()
	start := time.Now()
	server, err := startPageServer(ctx, c, path)
	if err != nil {
		return err
	}
	defer func() {
		_, endErr := server.end()
		err = errors.Join(err, endErr)
	}()
	if err := showUntil(tab, server.allRows(), drawn); err != nil {
		return err
	}
	p.first = append(p.first, time.Since(start).Seconds())
	if len(p.first) < c.rounds {
		return nil
	}
	most := mostMemory(server.pid())
	figures, err := chromedp.Run(tab, chromedp.Evaluate[pageFigures](moves, chromedp.EvalAwaitPromise))
	p.server = most()
	if err != nil {
		return err
	}
	p.Work, p.Between, p.Bars, p.Heap = figures.Work, figures.Between, figures.Bars, figures.Heap
	processes, err := browserProcesses(tab)
	if err != nil {
		return err
	}
	for pid, process := range processes {
		if process.Type == "renderer" {
			p.renderer = max(p.renderer, memoryOf(pid))
		}
	}
	if len(p.Work) == 0 || len(p.Between) == 0 {
		return errors.New("no frame was drawn")
	}
	return nil
}

// writeIndexed makes a reel of eight busy threads, 40 deep, with its index.
func writeIndexed(ctx context.Context, path string, events uint64) error {
	shape := bigreel.Shape{Events: events, Threads: 8, Depth: 40}
	shape.Last = func(w *reel.Writer) error { return timeline.Append(ctx, w, path, timeline.Options{}) }
	return bigreel.Write(path, shape)
}
