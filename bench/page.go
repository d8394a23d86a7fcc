package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// measurePage measures callreel view as a browser has it, on large reels: the first picture, frames while panning and zooming
// over all rows of eight threads 40 deep, 1,800 pixels wide, and the memory of both sides.
func measurePage(ctx context.Context, c config) []row {
	rows := pageRows(ctx, c, viewEvents, 0, "≤ 1 s")
	rows = append(rows, switchesRow(ctx, c))
	rows = append(rows, pageRows(ctx, c, viewEvents, viewMarks, "≤ 1 s")...)
	if c.billion {
		rows = append(rows, pageRows(ctx, c, 1_000_000_000, 0, "≤ 3 s")...)
	}
	return rows
}

// viewMarks is how many marks the page is measured with besides.
const viewMarks = 10_000_000

func pageRows(ctx context.Context, c config, events, marks uint64, reach string) []row {
	what := fmt.Sprintf("page of %d M events", events/1_000_000)
	if marks > 0 {
		what += fmt.Sprintf(", %d M marks", marks/1_000_000)
	}
	p, err := runPage(ctx, c, events, events/viewSwitches, marks)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	return []row{
		{
			what: what + ": first picture", value: fmt.Sprintf("%.2f s", median(p.first)), reach: reach,
			note: fmt.Sprintf("of calls, after the command, in a browser that runs, %.2f to %.2f; the browser had taken %.2f s to start", slices.Min(p.first), slices.Max(p.first), p.browser.Seconds()),
		},
		{what: what + ": all is there", value: fmt.Sprintf("%.2f s", median(p.all)), note: fmt.Sprintf("after the command: states of threads and what the program said, too, %.2f to %.2f", slices.Min(p.all), slices.Max(p.all))},
		{what: what + ": a frame on the main thread", value: spread(p.page.Work), reach: "≤ 16 ms", note: fmt.Sprintf("%s; %d frames, %d bars in the largest; of the empty page %s", within(p.page.Work, workMost), len(p.page.Work), p.page.Bars, spread(p.empty.Work))},
		{what: what + ": the same, rows as high as usual", value: spread(p.usual.Work), reach: "≤ 16 ms", note: within(p.usual.Work, workMost)},
		{what: what + ": the same, twice as fine", value: spread(p.sharp.Work), reach: "≤ 16 ms", note: fmt.Sprintf("%s; a screen with two pixels for one of CSS each way, no graphics card", within(p.sharp.Work, workMost))},
		{what: what + ": drawing it", value: spread(p.page.Draw), note: "the page's own part of the first of those"},
		{what: what + ": frame to frame", value: spread(p.page.Between), note: fmt.Sprintf("%s, without a graphics card, at 60 Hz; of the empty page %s, %s", within(p.page.Between, betweenMost), spread(p.empty.Between), within(p.empty.Between, betweenMost))},
		{what: what + ": the browser's memory for it", value: fmt.Sprintf("%.0f MB", p.page.renderer/1e6), reach: "≤ 300 MB", note: fmt.Sprintf("the most of its process, of which JavaScript's heap is %.0f MB in the end; of the empty page %.0f MB", p.page.Heap/1e6, p.empty.renderer/1e6)},
		{what: what + ": the server's memory beyond the file", value: fmt.Sprintf("%.0f MB", p.server/1e6), reach: "≤ 1000 MB", note: "the most, while panning and zooming"},
	}
}

// spread says what is usual of times in milliseconds, and what is not.
func spread(ms []float64) string {
	at := func(share float64) float64 { return ms[min(len(ms)-1, int(share*float64(len(ms))))] }
	return fmt.Sprintf("%.1f ms, p95 %.1f, p99 %.1f", at(0.5), at(0.95), at(0.99))
}

// within says how many of sorted times in milliseconds are at most so long.
func within(ms []float64, most float64) string {
	n := sort.Search(len(ms), func(i int) bool { return ms[i] > most })
	return fmt.Sprintf("%.0f %% ≤ %g ms", 100*float64(n)/float64(len(ms)), most)
}

// A frame's time on the main thread, and what a frame takes at 60 Hz by a browser's clock, ms.
const (
	workMost    = 16
	betweenMost = 17
)

type pageFigures struct {
	first   []float64     // seconds, of each round: until calls are on the screen
	all     []float64     // and until everything is
	browser time.Duration // its start
	empty   frames        // of a page that does next to nothing, right before
	page    frames
	usual   frames  // with the rows as high as they are at first
	sharp   frames  // the same on a screen with finer pixels
	server  float64 // bytes
}

// frames are those of a page that moves.
type frames struct {
	Work     []float64 // ms from the first of a frame's callbacks until the main thread is free again, sorted
	Draw     []float64 // ms of it that callreel's drawing takes, sorted
	Between  []float64 // ms from frame to frame, sorted
	Bars     int
	Heap     float64 // bytes
	renderer float64 // bytes, the most
}

// follow is a function that moves a page in each of 400 frames, and tells of them.
const follow = `async (step) => {
	const ask = window.requestAnimationFrame.bind(window), between = [], work = [], channel = new MessageChannel();
	let began = 0;
	// The message is handled after the frame is painted.
	channel.port1.onmessage = () => { work.push(performance.now() - began); began = 0; };
	window.requestAnimationFrame = (act) => ask((now) => {
		if (began === 0) { began = performance.now(); channel.port2.postMessage(0); }
		act(now);
	});
	const frame = () => new Promise(window.requestAnimationFrame);
	let last = await frame();
	for (let i = 0; i < 400; i++) {
		step(i);
		const now = await frame();
		between.push(now - last);
		last = now;
	}
	window.requestAnimationFrame = ask;
	const sorted = (a) => a.sort((x, y) => x - y);
	return { Work: sorted(work), Between: sorted(between), Heap: performance.memory.usedJSHeapSize };
}`

// moves pans and zooms as a held key does, in every frame, all over the recording.
const moves = `(async () => {
	const t = window.callreel.timeline();
	let bars = 0;
	t.frameTimes = [];
	const figures = await (` + follow + `)((n) => {
		const round = Math.floor(n / 100), i = n % 100;
		const x = t.size.width * (0.2 + 0.6 * ((i * 7 + round * 31) % 100) / 100);
		if (i < 40) t.zoomBy(0.87, x);
		else if (i < 60) t.panBy(0.06);
		else t.zoomBy(1 / 0.85, x);
		bars = Math.max(bars, Number(t.canvas.dataset.bars));
	});
	return { ...figures, Draw: t.frameTimes.sort((x, y) => x - y), Bars: bars };
})()`

// emptyMoves draws a pixel a frame, in a canvas as large as the page's.
const emptyMoves = `(async () => {
	const canvas = document.createElement("canvas");
	document.body.append(canvas);
	[canvas.width, canvas.height] = [1800, 1020];
	const ctx = canvas.getContext("2d", { alpha: false });
	return (` + follow + `)((n) => {
		ctx.fillStyle = n % 2 ? "red" : "blue";
		ctx.fillRect(n, n, 1, 1);
	});
})()`

// measureFrames has a tab move, and looks at its browser's memory meanwhile.
func measureFrames(tab context.Context, script string) (f frames, err error) {
	processes, err := browserProcesses(tab)
	if err != nil {
		return f, err
	}
	var most []func() float64
	for pid, p := range processes {
		if p.Type == "renderer" {
			most = append(most, mostMemory(pid))
		}
	}
	f, err = chromedp.Run(tab, chromedp.Evaluate[frames](script, chromedp.EvalAwaitPromise))
	for _, m := range most {
		f.renderer = max(f.renderer, m())
	}
	if err == nil && (len(f.Work) == 0 || len(f.Between) == 0) {
		err = errors.New("no frame was drawn")
	}
	return f, err
}

func runPage(ctx context.Context, c config, events, switches, marks uint64) (p pageFigures, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	path := filepath.Join(c.dir, "page.reel")
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := writeIndexed(ctx, path, events, switches, marks); err != nil {
		return p, err
	}
	start := time.Now()
	tab, end, err := newBrowser(ctx)
	if err != nil {
		return p, err
	}
	defer end()
	p.browser = time.Since(start)
	if p.empty, err = measureFrames(tab, emptyMoves); err != nil {
		return p, err
	}
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
	// States and what the program said are there some seconds later.
	if err := waitUntil(tab, drawn+restDrawn); err != nil {
		return err
	}
	p.all = append(p.all, time.Since(start).Seconds())
	if len(p.first) < c.rounds {
		return nil
	}
	most := mostMemory(server.pid())
	defer func() { p.server = most() }()
	if p.page, err = measureFrames(tab, moves); err != nil {
		return err
	}
	if p.usual, err = p.again(tab, server, 1); err != nil {
		return err
	}
	p.sharp, err = p.again(tab, server, 2)
	return err
}

// restDrawn is true once what the program said and the states of its threads are there, too, if there are any.
const restDrawn = ` && ["none", "ready"].includes(window.callreel.reels[0].marks?.state) && document.querySelector("canvas.lanes").dataset.unsummed === "no"`

// again measures the page with its rows as they are at first, on a screen with so many pixels for one of CSS.
func (p *pageFigures) again(tab context.Context, server *pageServer, scale float64) (frames, error) {
	if err := sizeTab(tab, chromedp.EmulateScale(scale)); err != nil {
		return frames{}, err
	}
	if err := showUntil(tab, "about:blank", "true"); err != nil {
		return frames{}, err
	}
	if err := showUntil(tab, server.url, drawn+restDrawn); err != nil {
		return frames{}, err
	}
	return measureFrames(tab, moves)
}

// writeIndexed makes a reel of eight busy threads, 40 deep, with its index.
func writeIndexed(ctx context.Context, path string, events, switches, marks uint64) error {
	shape := bigreel.Shape{Events: events, Threads: 8, Depth: 40, Switches: switches, Marks: marks}
	shape.Last = func(w *reel.Writer) error { return timeline.Append(ctx, w, path, timeline.Options{}) }
	return bigreel.Write(path, shape)
}
