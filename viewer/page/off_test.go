package page_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
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

func TestStretchesInWhichFunctionsWereOffAreHatched(t *testing.T) {
	p := open(t, offReel(t))
	p.until(`document.querySelector(".off-strip").dataset.runs === "3"`)
	p.picture("TestOff-strip")

	// A click lists what was off there, and leads to one of it, which the lanes are striped for.
	x, y := stripAt(p, 70)
	p.do(chromedp.MouseClickXY(x, y))
	p.until(`document.querySelectorAll(".off-list li button").length === 2`)
	list := p.text(".off-list")
	for _, want := range []string{"2 functions off at ", "<b>hash", "parse", "off from 50 ms to 90 ms, for 40 ms, about 40 calls"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is missing: %q", want, list)
		}
	}
	p.picture("TestOff-list")
	if lanes := eval[string](p, `document.querySelector(".lanes").dataset.off`); lanes != "0" {
		t.Errorf("striped without anything looked for: %s", lanes)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".off-list li button")].find((b) => b.innerText === "parse").click()`))
	p.until(`document.querySelector(".lanes").dataset.off === "1" && document.querySelector(".off-strip").dataset.found === "1"`)
	p.until(`document.querySelector(".find-status").innerText === "1 function, 6 calls; 1 off for some time"`)
	if name := p.text(".off-names .name"); name != "parse" {
		t.Errorf("the strip says %q", name)
	}
	p.still()
	p.picture("TestOff-found")

	// Where nothing is painted the tip says so.
	box := p.rect(".lanes")
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, box.Top+box.Height/2))
	p.until(`document.querySelector(".tip").innerText.includes("parse was off here")`)

	// What has no call at all isn't taken for what wasn't called.
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.findName("<b>hash")`))
	p.until(`document.querySelector(".find-status").innerText === "no call recorded; 1 function off for some time"`)
	p.until(`document.querySelector(".lanes").dataset.off === "1"`)

	// A selected call stands for its function, and the key lists what was off in what is shown.
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.findName("")`))
	p.until(`document.querySelector(".lanes").dataset.off === "0"`)
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ selected: { lane: 0, row: 1, at: 12e6 } }, true)`))
	p.until(`document.querySelector(".lanes").dataset.off === "1" && document.querySelector(".off-names .name").innerText === "parse"`)
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ visible: { from: 10e6, to: 30e6 }, selected: null }, true); window.callreel.timeline().show({ from: 10e6, to: 30e6 }, false); document.activeElement.blur()`))
	p.press("o")
	p.until(`document.querySelectorAll(".off-list li button").length === 1`)
	p.press("\x1b")
	p.until(`!document.querySelector(".off-list").matches(":popover-open")`)
}

func TestWhichFunctionsWereOffIsListedOnDemand(t *testing.T) {
	p := open(t, offReel(t))
	p.media("dark")
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ find: "parse", selected: { lane: 0, row: 0, at: 55e6 } }, true)`))
	p.until(`document.querySelector(".off-while summary") !== null`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".off-while summary").click()`))
	p.until(`document.querySelectorAll(".off-while li").length === 2`)
	if text := p.text(".off-while"); !strings.Contains(text, "parse off for 9 ms, about 9 calls, 100 % of it") {
		t.Errorf("%q", text)
	}
	p.until(`document.querySelector(".lanes").dataset.off === "1"`)
	p.still()
	p.picture("TestOff-dark")

	// In the table calls are at least so many, and the flame graph has the note, too.
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ tab: "functions", selected: null }, true)`))
	p.until(`document.querySelector(".tab-analysis .at-least") !== null`)
	if calls := p.text(".tab-analysis .at-least"); calls != "≥ 6" {
		t.Errorf("parse: %q", calls)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".off-note summary").click()`))
	p.until(`document.querySelectorAll(".tab-analysis .off-note li").length === 2`)
	p.picture("TestOff-dark-functions")
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ tab: "flame" }, true)`))
	p.until(`document.querySelector(".tab-analysis .off-note")?.innerText.includes("2 functions were not recorded")`)
}

func TestFunctionsThatWereOffInOneOfTwoReelsAreMarked(t *testing.T) {
	whole := made(t, "whole.reel", []string{"serve", "parse", "<b>hash"}, func(w *reel.Writer) {
		const ms = 1_000_000
		thread(t, w, 7, "server", reel.Entry(10*ms, 0x10000, 1), reel.Entry(11*ms, 0xff00, 2), reel.Exit(12*ms, 0xff00, 2),
			reel.Entry(13*ms, 0xff00, 3), reel.Exit(14*ms, 0xff00, 3), reel.Exit(19*ms, 0x10000, 1))
	})
	p := open(t, whole, offReel(t))
	p.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#tab=compare"`))
	p.until(`document.querySelectorAll(".tab-compare .off-mark").length === 2`)
	if text := p.text(".tab-compare .off-note"); !strings.HasPrefix(text, "In B 2 functions were off for some time") || strings.Contains(text, "in A") {
		t.Errorf("%q", text)
	}
	rows := p.text(".tab-compare .table")
	for _, want := range []string{"off in B", "≥ 6"} {
		if !strings.Contains(rows, want) {
			t.Errorf("%q is missing: %q", want, rows)
		}
	}
	if strings.Contains(rows, "gone") {
		t.Errorf("what was off is said to be gone: %q", rows)
	}
	p.until(`[...document.querySelectorAll(".tab-compare .off-strip")].filter((c) => !c.hidden && c.dataset.runs === "3").length === 1`)
	p.picture("TestOff-compare")

	// What is found is striped in both.
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.findName("parse")`))
	p.until(`[...document.querySelectorAll(".tab-compare canvas.lanes")].map((c) => c.dataset.off).join() === "0,1"`)
}

// Thousands of stretches are drawn from an answer that is bounded, however far it is zoomed.
func TestManyStretchesInWhichFunctionsWereOffAreShown(t *testing.T) {
	const us = 1000
	p := open(t, made(t, "many.reel", []string{"serve", "parse"}, func(w *reel.Writer) {
		thread(t, w, 7, "server", reel.Entry(1000, 0x10000, 1), reel.Exit(200_000*us, 0x10000, 1))
		var list []reel.Off
		for i := range uint64(100_000) {
			list = append(list, reel.Off{Function: 2, From: (1 + 2*i) * us, To: (2 + 2*i) * us})
		}
		realtest.Must(t, w.Off(list))
	}))
	p.until(`Number(document.querySelector(".off-strip").dataset.runs) > 0`)
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.findName("parse")`))
	p.until(`Number(document.querySelector(".off-strip").dataset.found) > 0`)
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.timeline().show({ from: 1e8, to: 1e8 + 21000 }, false)`))
	p.until(`[10, 11, 12].includes(Number(document.querySelector(".off-strip").dataset.runs))`)
	p.until(`[10, 11, 12].includes(Number(document.querySelector(".lanes").dataset.off))`)
	p.picture("TestOff-many")
	if n := eval[int](p, `Number(document.querySelector(".off-strip").dataset.requests)`); n > 8 {
		t.Errorf("%d requests", n)
	}
}

func TestFunctionsThatGoOffInARecordingInProgressAreShown(t *testing.T) {
	realtest.Need(t, realtest.Chromium)
	path := filepath.Join(t.TempDir(), "live.reel")
	w := begin(t, path, []string{"tick", "hash"})
	th := thread(t, w, 8, "ticker")
	now := uint64(1000)
	grow := func() {
		realtest.Must(t, th.Append([]reel.Event{reel.Entry(now, 4096, 1), reel.Exit(now+3_000_000, 4096, 1)}))
		now += 10_000_000
		realtest.Must(t, w.Flush())
	}
	grow()
	server, url := serve(t, viewer.Options{Paths: []string{path}, Recording: true})
	p := show(t, url)
	if !eval[bool](p, `document.querySelector(".off-strip").hidden`) {
		t.Error("nothing is off, and there is a strip")
	}
	realtest.Must(t, w.Off([]reel.Off{{Function: 2, From: now}}))
	grow()
	grow()
	p.until(`document.querySelector(".off-strip").dataset.runs === "1"`)
	realtest.Must(t, w.Off([]reel.Off{{Function: 2, From: 10_001_000, To: now - 5_000_000}, {Function: 2, From: now}}))
	grow()
	realtest.Must(t, w.Close())
	server.Ended()
	p.until(`document.querySelector(".notices").innerText.includes("has ended")`)
	p.until(`document.querySelector(".off-strip").dataset.runs === "2"`)
}

// stripAt is where a time, in ms, is on the strip above the lanes.
func stripAt(p *tab, ms float64) (x, y float64) {
	box, v := p.rect(".off-strip"), p.visible()
	return box.Left + (ms*1e6-v.From)/v.length()*box.Width, box.Top + box.Height/2
}
