package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// offReel is a server in which "parse" was off for a part of the time, and "<b>hash" always.
func offReel(t testing.TB) string {
	const ms = 1_000_000
	return made(t, "off.reel", []string{"serve", "parse", "<b>hash"}, func(w *reel.Writer) {
		var events []reel.Event
		for i := range uint64(10) {
			at := (10 + 10*i) * ms
			events = append(events, reel.Entry(at, 0x10000, 1))
			if i < 4 || i > 7 {
				events = append(events, reel.Entry(at+ms, 0xff00, 2), reel.Exit(at+4*ms, 0xff00, 2))
			}
			events = append(events, reel.Exit(at+9*ms, 0x10000, 1))
		}
		thread(t, w, 7, "server", events...)
		realtest.Must(t, w.Off([]reel.Off{{Function: 2, From: 50 * ms, To: 90 * ms, Estimated: 40}, {Function: 3, From: ms}}))
		realtest.Must(t, w.Budget(reel.Budget{Wanted: 0.02, CallsShare: 0.06, TimeShare: 0.89}))
	})
}

func TestFunctionsThatWereOffAreShown(t *testing.T) {
	p := open(t, offReel(t))
	p.still()

	// In the table of all functions, and in the details of one.
	p.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#tab=functions"`))
	p.until(`document.querySelector(".tab-analysis .off-note")?.innerText.includes("2 functions were not recorded for some time")`)
	note := p.text(".tab-analysis .off-note")
	for _, want := range []string{"<b>hash, parse", "Budget 2", "of calls and 89"} {
		if !strings.Contains(note, want) {
			t.Errorf("%q is missing: %q", want, note)
		}
	}
	if mark := p.text(".tab-analysis .off-mark"); !strings.Contains(mark, "off 4") {
		t.Errorf("parse is marked %q", mark)
	}
	p.picture("TestOff-functions")
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".tab-analysis .off-mark").click()`))
	p.until(`document.querySelector(".tab-analysis .off-times")?.innerText.includes("off from")`)
	if times := p.text(".tab-analysis .off-times"); !strings.Contains(times, "off from 50 ms to 90 ms") || !strings.Contains(times, "about 40 calls") {
		t.Errorf("parse was off: %q", times)
	}
	p.picture("TestOff-detail")

	// Of a range.
	for _, r := range []struct {
		from, to int
		want     string
	}{{60, 80, "2 functions were"}, {10, 30, "1 function was"}} {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.callreel.change({ tab: "timeline", range: { from: %de6, to: %de6 } }, true)`, r.from, r.to)))
		p.until(fmt.Sprintf(`document.querySelector(".panel-range .off-note")?.innerText.includes(%q)`, r.want))
	}

	// Of a call, when it is selected, and when the pointer rests on it.
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ range: null, selected: { lane: 0, row: 0, at: 55e6 } }, true)`))
	p.until(`document.querySelector(".off-while")?.innerText.includes("2 functions were off while it ran: parse, <b>hash")`)
	p.picture("TestOff-call")
	p.still()
	if bars := p.bars(); len(bars) > 0 {
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, bars[0].X, bars[0].Y))
		p.until(`document.querySelector(".tip").innerText.includes("off while it ran")`)
	} else {
		t.Error("no bar has room for its name")
	}
}
