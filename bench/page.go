package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// measurePage measures callreel view as a browser has it, on a large reel: the first picture, frames while panning and zooming
// over all rows of eight threads 40 deep, 1,800 pixels wide, and the memory of both sides.
func measurePage(ctx context.Context, c config) []row {
	what := fmt.Sprintf("page of %d M events", viewEvents/1_000_000)
	p, err := runPage(ctx, c)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	ms := func(v []float64, share float64) float64 { return v[min(len(v)-1, int(share*float64(len(v))))] }
	return []row{
		{what: what + ": first picture", value: fmt.Sprintf("%.2f s", p.first.Seconds()), reach: "≤ 1 s", note: "after the command, in a browser that runs"},
		{what: what + ": drawing a frame", value: fmt.Sprintf("%.1f ms, p99 %.1f", ms(p.Work, 0.5), ms(p.Work, 0.99)), reach: "≤ 16 ms", note: fmt.Sprintf("%d frames, %d bars in the largest", len(p.Work), p.Bars)},
		{what: what + ": frame to frame", value: fmt.Sprintf("%.1f ms, p99 %.1f", ms(p.Between, 0.5), ms(p.Between, 0.99)), note: "without a graphics card, at 60 Hz"},
		{what: what + ": JavaScript's memory", value: fmt.Sprintf("%.0f MB", p.Heap/1e6), reach: "≤ 300 MB", note: fmt.Sprintf("its process %.0f MB", p.renderer/1e6)},
		{what: what + ": the server's memory beyond the file", value: fmt.Sprintf("%.0f MB", p.server/1e6), reach: "≤ 1000 MB"},
	}
}

type pageFigures struct {
	first    time.Duration
	Work     []float64 // ms in which a frame was made, sorted
	Between  []float64 // ms from frame to frame, sorted
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

func runPage(ctx context.Context, c config) (p pageFigures, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	path := filepath.Join(c.dir, "page.reel")
	shape := bigreel.Shape{Events: viewEvents, Threads: 8, Depth: 40}
	shape.Last = func(w *reel.Writer) error { return timeline.Append(ctx, w, path, timeline.Options{}) }
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := bigreel.Write(path, shape); err != nil {
		return p, err
	}
	tab, end, err := newBrowser(ctx)
	if err != nil {
		return p, err
	}
	defer end()
	start := time.Now()
	serving := exec.CommandContext(ctx, c.callreel, "view", "--no-open", path)
	serving.Stderr = os.Stderr
	out, err := serving.StdoutPipe()
	if err != nil {
		return p, err
	}
	if err := serving.Start(); err != nil {
		return p, err
	}
	defer func() {
		_ = serving.Process.Signal(os.Interrupt)
		_ = serving.Wait() // ended by a signal
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return p, fmt.Errorf("callreel view: %w", err)
	}
	// Rows of three pixels: all of them are on the screen.
	still := chromedp.Poll[bool](`document.querySelector("canvas.lanes")?.dataset.state === "still" && Number(document.querySelector("canvas.lanes").dataset.bars) > 0`,
		chromedp.WithPollingTimeout(time.Minute))
	if err := chromedp.Do(tab, chromedp.Navigate(strings.TrimSpace(url)+"#h=3")); err != nil {
		return p, err
	}
	if _, err := chromedp.Run(tab, still); err != nil {
		return p, fmt.Errorf("waiting for the first picture: %w", err)
	}
	first := time.Since(start)
	if p, err = chromedp.Run(tab, chromedp.Evaluate[pageFigures](moves, chromedp.EvalAwaitPromise)); err != nil {
		return p, err
	}
	p.first = first
	p.server = memoryOf(serving.Process.Pid)
	processes, err := chromedp.CallBrowser(tab, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return p, err
	}
	for _, pr := range processes.ProcessInfo {
		if pr.Type == "renderer" {
			p.renderer = max(p.renderer, memoryOf(int(pr.ID)))
		}
	}
	if len(p.Work) == 0 || len(p.Between) == 0 {
		return p, errors.New("no frame was drawn")
	}
	return p, nil
}

// newBrowser starts a browser as wide as its lanes are to be, on an empty page.
func newBrowser(ctx context.Context) (tab context.Context, end func(), err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, err
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("enable-precise-memory-info", true),
	})
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(ctx)
	end = func() { cancel(); stop() }
	const names, heightOfAll = 224, 1120 // CSS pixels
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1800+names+12, heightOfAll)); err != nil {
		end()
		return nil, nil, err
	}
	return tab, end, nil
}

// memoryOf is what a process has in memory beside files, in bytes.
func memoryOf(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "RssAnon: %f kB", &kb); err == nil {
			return kb * 1024
		}
	}
	return 0
}
