package page_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func twoCalls(t testing.TB) string {
	return made(t, "two.reel", []string{"main", "sub"}, func(w *reel.Writer) {
		thread(t, w, 8, "main", reel.Entry(1000, 1<<20, 1), reel.Entry(200_000, 1<<20-64, 2), reel.Exit(300_000, 1<<20-64, 2), reel.Exit(900_000, 1<<20, 1))
	})
}

// beforeScripts runs a script in the page before its own, and loads it again.
func (p *tab) beforeScripts(script string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	realtest.Must(p, err)
	p.do(chromedp.Reload())
}

// Where no answer has come yet nothing may look as if nothing had been called.
func TestWhatIsNotKnownYetIsMarked(t *testing.T) {
	p := open(t, twoCalls(t))
	// The page fetches by itself, and only once it may.
	p.beforeScripts(`window.Worker = class { constructor() { throw new Error("no") } };
		{ const ask = window.fetch, may = new Promise((done) => { window.mayFetch = done });
		  window.fetch = (url, how) => String(url).includes("/api/view?") ? may.then(() => ask(url, how)) : ask(url, how); }`)
	p.until(`document.documentElement.dataset.ready === "yes"`)
	p.until(`Number(document.querySelector("canvas.lanes")?.dataset.unknown) === 2`) // rows
	p.picture("TestWhatIsNotKnown-waiting")
	eval[bool](p, `(window.mayFetch(), true)`)
	p.still()
	p.until(`Number(document.querySelector("canvas.lanes").dataset.unknown) === 0`)
}

func TestFailedAnswersAreToldAndAskedForAgain(t *testing.T) {
	p := open(t, twoCalls(t))
	p.beforeScripts(`window.Worker = class { constructor() { throw new Error("no") } };
		{ const ask = window.fetch; window.failing = true;
		  window.fetch = (url, how) => String(url).includes("/api/view?") && window.failing ? ask("api/view?from=x", how) : ask(url, how); }`)
	p.until(`document.querySelector(".notices")?.innerText.includes("from")`)
	p.until(`document.querySelector("canvas.lanes").dataset.state === "failed"`)
	if n := eval[float64](p, `Number(document.querySelector("canvas.lanes").dataset.unknown)`); n != 2 {
		t.Errorf("%v rows are marked as not known", n)
	}
	eval[bool](p, `(window.failing = false, true)`)
	p.still()
	p.until(`Number(document.querySelector("canvas.lanes").dataset.unknown) === 0`)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = nil // the browser tells of answers that are errors
}

func TestWithoutAClockEventsAreCounted(t *testing.T) {
	realtest.Need(t, realtest.Chromium)
	path := t.TempDir() + "/order.reel"
	w := madereel.Create(t, path, reel.Header{StartUnixNS: 1, PID: 7, Clock: reel.Clock{Mode: reel.ClockNone}}, reel.Image{Path: "/usr/bin/made"}, "main", "sub")
	var events []reel.Event
	for range 1000 {
		events = append(events, reel.Entry(0, 1<<20, 1), reel.Entry(0, 1<<20-64, 2), reel.Exit(0, 1<<20-64, 2), reel.Exit(0, 1<<20, 1))
	}
	thread(t, w, 8, "main", events...)
	realtest.Must(t, w.Close())
	p := open(t, path)
	if top := p.text(".file"); !strings.Contains(top, "no clock") || !strings.Contains(top, " ev") {
		t.Errorf("the bar above says %q", top)
	}
	p.press("4")
	p.until(`document.querySelectorAll(".functions-box .table-row").length === 2`)
	if rows := p.text(".functions-box .table"); !strings.Contains(rows, " ev") || strings.Contains(rows, " ns") || strings.Contains(rows, "µs") {
		t.Errorf("the table of functions has times: %q", rows)
	}
	p.press("1")
}
