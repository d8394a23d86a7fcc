package page_test

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

func TestViewsComeByAWorkerOrWithoutOne(t *testing.T) {
	path := made(t, "one.reel", []string{"main"}, func(w *reel.Writer) {
		thread(t, w, 8, "main", reel.Entry(1000, 1<<20, 1), reel.Exit(900_000, 1<<20, 1))
	})
	for _, c := range []struct {
		name, before string
		byPage       bool
	}{
		{"worker", "", false},
		{"none can be made", `window.Worker = class { constructor() { throw new Error("no") } }`, true},
		{"it does not load", `{ const W = Worker; window.Worker = class { constructor() { return new W("assets/app.css") } } }`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, path)
			if c.before != "" {
				_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: c.before})
				realtest.Must(t, err)
				p.do(chromedp.Reload())
				p.ready()
			}
			p.until(`Number(document.querySelector("canvas.lanes").dataset.bars) > 0`)
			if got := eval[bool](p, `performance.getEntriesByType("resource").some((r) => r.name.includes("/api/view?"))`); got != c.byPage {
				t.Errorf("the page itself has asked for views: %v, want %v", got, c.byPage)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if c.byPage { // the browser may tell of the worker
				p.said = nil
			}
		})
	}
}
