package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// newBrowser starts a browser as wide as the page's lanes are to be, on an empty page.
func newBrowser(ctx context.Context) (tab context.Context, end func(), err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, err
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("enable-unsafe-swiftshader", true), // speedscope draws by WebGL only
	})
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(ctx)
	end = func() { cancel(); stop() }
	if err := sizeTab(tab); err != nil {
		end()
		return nil, nil, err
	}
	return tab, end, nil
}

// sizeTab makes the lanes of the page that is shown there 1,800 pixels wide.
func sizeTab(tab context.Context, more ...chromedp.EmulateViewportOption) error {
	const lanes, names, heightOfAll = 1800, 224 + 12, 1120 // CSS pixels
	return chromedp.Do(tab, chromedp.EmulateViewport(lanes+names, heightOfAll, more...))
}

// newTab opens another tab of the browser.
func newTab(tab context.Context) (another context.Context, end func(), err error) {
	another, end = chromedp.NewContext(tab)
	if err := sizeTab(another); err != nil {
		end()
		return nil, nil, err
	}
	return another, end, nil
}

// showUntil goes to an address, and returns once an expression is true there and what it stands for is on the screen.
func showUntil(tab context.Context, url, drawn string) error {
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		return err
	}
	return waitUntil(tab, drawn)
}

// waitUntil returns once an expression is true of the page that is shown, and what it stands for is on the screen.
func waitUntil(tab context.Context, drawn string) error {
	if _, err := chromedp.Run(tab, chromedp.Poll[bool](drawn, chromedp.WithPollingTimeout(5*time.Minute))); err != nil {
		var said string
		if text, err := chromedp.Run(tab, chromedp.Evaluate[string](`document.body.innerText`)); err == nil {
			said = strings.Join(strings.Fields(text), " ")
		}
		return fmt.Errorf("waiting for the first picture: %w; the page says %.200q", err, said)
	}
	const twoFrames = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`
	_, err := chromedp.Run(tab, chromedp.Evaluate[bool](twoFrames, chromedp.EvalAwaitPromise))
	return err
}

// browserProcesses are those of the browser, each with what it has used so far.
func browserProcesses(tab context.Context) (map[int]systeminfo.ProcessInfo, error) {
	all, err := chromedp.CallBrowser(tab, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	byID := map[int]systeminfo.ProcessInfo{}
	for _, p := range all.ProcessInfo {
		byID[int(p.ID)] = *p
	}
	return byID, nil
}

// usedSince is the CPU time that the browser's processes have used since they were as before, in seconds.
func usedSince(tab context.Context, before map[int]systeminfo.ProcessInfo) (float64, error) {
	now, err := browserProcesses(tab)
	used := 0.0
	for pid, p := range now {
		used += p.CPUTime - before[pid].CPUTime // new ones began at none
	}
	return used, err
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

// mostMemory looks again and again how much memory a process has beside files, and returns what says how much it was at most.
func mostMemory(pid int) (most func() float64) {
	stop, said := make(chan struct{}), make(chan float64, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for high := 0.0; ; {
			high = max(high, memoryOf(pid))
			select {
			case <-stop:
				said <- high
				return
			case <-tick.C:
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-said
	}
}
