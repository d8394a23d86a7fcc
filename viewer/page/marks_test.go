package page_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// markReel is a server of two threads that says what it does: requests with spans in them, jobs for the other thread, a queue.
func markReel(t testing.TB) string {
	const ms = 1_000_000
	return made(t, "marks.reel", []string{"serve", "parse", "answer", "work", "step"}, func(w *reel.Writer) {
		madereel.AddMarkers(t, w)
		a, b := madereel.NewRun(ms), madereel.NewRun(ms)
		var said, other madereel.Marks
		said.At(ms/2, madereel.MarkRequestDone, madereel.Number(500)) // of one that began before the recording
		for i := range uint64(20) {
			a.Call(1, func() {
				said.At(a.Now+1000, madereel.MarkRequest, madereel.Text(fmt.Sprintf("/page/%d?<b>", i)), madereel.Number(1000*i))
				a.Work(2000)
				a.Call(2, func() {
					said.At(a.Now, madereel.MarkBegin, madereel.Text("parse"))
					a.Work(ms)
					said.At(a.Now-1000, madereel.MarkEnd)
				})
				said.At(a.Now, madereel.MarkJob, madereel.Number(i))
				said.At(a.Now+500, madereel.MarkSend, madereel.Number(i))
				said.At(a.Now+1000, madereel.MarkQueue, madereel.Number(i%7))
				said.At(a.Now+2000, madereel.MarkNote, madereel.Text("half way"))
				a.Call(3, func() { a.Work(ms * (1 + i%4)) })
				said.At(a.Now, madereel.MarkRequestDone, madereel.Number(200))
			})
			a.Idle(a.Now + ms/2)
			b.Idle(a.Now)
			b.Call(4, func() {
				other.At(b.Now+1000, madereel.MarkBegin, madereel.Text("work"))
				b.Work(5000)
				other.At(b.Now, madereel.MarkReceive, madereel.Number(i))
				b.Call(5, func() { b.Work(ms / 2) })
				other.At(b.Now, madereel.MarkJobStep, madereel.Number(i))
				other.At(b.Now+100, madereel.MarkLoad, madereel.Number(math.Float64bits(math.Sin(float64(i)))))
				other.At(b.Now+200, madereel.MarkEnd)
				if i != 7 {
					other.At(b.Now+300, madereel.MarkJobEnd, madereel.Number(i))
				}
				b.Work(1000)
			})
		}
		said.At(a.Now, madereel.MarkRequest, madereel.Text("/last"), madereel.Number(1)) // never ends
		a.Call(1, func() { a.Work(3 * ms) })
		for _, x := range []struct {
			run   *madereel.Run
			marks *madereel.Marks
			tid   int
			name  string
		}{{a, &said, 8, "server"}, {b, &other, 9, "worker"}} {
			x.marks.Write(t, x.run.Write(t, w, reel.Thread{TID: x.tid, Process: 7, Name: x.name}, true))
		}
		realtest.Must(t, w.Pause(reel.Pause{From: a.Now + ms, To: a.Now + 15*ms, By: "command"}))
	})
}

// openSaid is open of a reel in which the program said something, which has been read.
func openSaid(t testing.TB, path string) *tab {
	p := open(t, path)
	p.until(`(d => Number(d.spans) + Number(d.graphs) > 0)(document.querySelector("canvas.lanes").dataset)`)
	p.still()
	return p
}

func TestWhatTheProgramSaidIsDrawn(t *testing.T) {
	p := openSaid(t, markReel(t))
	d := eval[struct{ Spans, Ticks, Graphs, Flows, Paused, Bars string }](p, `(() => { const d = document.querySelector("canvas.lanes").dataset; return { Spans: d.spans, Ticks: d.ticks, Graphs: d.graphs, Flows: d.flows, Paused: d.paused, Bars: d.bars } })()`)
	t.Logf("%+v", d)
	p.until(`Number(document.querySelector("canvas.lanes").dataset.flows) === 20`)
	if d.Graphs < "2" || d.Paused != "1" || d.Ticks == "0" || d.Bars == "0" {
		t.Errorf("%+v", d)
	}
	p.picture("TestMarks-all")
	names := p.text(".lane-names")
	for _, want := range []string{"queue", "load", "job", "server", "worker", "asynchronous · 20", "counter · 20"} {
		if !strings.Contains(names, want) {
			t.Errorf("%q is not among the lanes: %q", want, names)
		}
	}

	// Hidden, and shown again.
	p.do(chromedp.Focus(chromedp.CSS("canvas.lanes")))
	p.press("k")
	p.until(`document.querySelector("canvas.lanes").dataset.spans === "0" && location.hash.includes("said=0")`)
	p.still()
	if names := p.text(".lane-names"); strings.Contains(names, "queue") {
		t.Errorf("hidden, there is still %q", names)
	}
	p.press("k")
	p.until(`document.querySelector("canvas.lanes").dataset.spans !== "0" && !location.hash.includes("said=")`)
}

func TestSelectedSpanSaysWhatIsKnownOfIt(t *testing.T) {
	p := openSaid(t, markReel(t))
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.find.set("request")`))
	p.until(`document.querySelector(".find-status").innerText.includes("22 marks")`)
	p.do(chromedp.Focus(chromedp.CSS("canvas.lanes")))
	for _, want := range []string{"beginning is not in the recording", "/page/0?<b>", "/page/1?<b>"} {
		p.press("n")
		p.until(fmt.Sprintf(`document.querySelector(".panel-item").innerText.includes(%q)`, want))
	}
	p.still()
	p.picture("TestMarks-span")
	said := p.text(".panel-item")
	for _, want := range []string{"request", "path", "status", "200", "Place", "p50", "p99", "made:request__start", "Flows", "to worker"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing: %q", want, said)
		}
	}
	hash := eval[string](p, `location.hash`)
	if !strings.Contains(hash, "mk=span.") {
		t.Errorf("the address is %s", hash)
	}
	p.do(chromedp.Reload())
	p.ready()
	p.until(`document.querySelector(".panel-item")?.innerText.includes("/page/1?<b>")`)
	// A flow leads to the other thread's span.
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".panel-item .callers button").click()`))
	p.until(`window.callreel.tab().items.mark?.name === "work"`)
	p.press("f")
	p.still()
	p.picture("TestMarks-flow")
}

// Keys go from a span to those around it as from a call.
func TestKeysGoFromSpanToSpan(t *testing.T) {
	p := openSaid(t, markReel(t))
	selected := func(want string) {
		t.Helper()
		p.until(fmt.Sprintf(`(m => m && (m.arguments ?? []).map(a => a.value).concat(m.name).join(" ").includes(%q))(window.callreel.tab().items.mark)`, want))
	}
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.find.set("request")`))
	p.until(`document.querySelector(".find-status").innerText.includes("22 marks")`)
	p.do(chromedp.Focus(chromedp.CSS("canvas.lanes")))
	p.press("n")
	p.until(`window.callreel.tab().items.mark?.unstarted`)
	p.press("n")
	selected("/page/0?<b>")
	for _, step := range []struct{ key, want string }{
		{"ArrowRight", "/page/1?<b>"}, {"ArrowRight", "/page/2?<b>"}, {"ArrowDown", "parse"}, {"ArrowUp", "/page/2?<b>"}, {"ArrowLeft", "/page/1?<b>"}, {"l", "/page/3?<b>"},
	} {
		if step.key == "l" {
			p.press("l")
		} else {
			p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: %q, shiftKey: true, bubbles: true }))`, step.key)))
		}
		selected(step.want)
	}
	p.still()
}

func TestRangeHasTablesOfWhatTheProgramSaid(t *testing.T) {
	p := openSaid(t, markReel(t))
	p.press("r")
	for _, k := range []struct {
		kind string
		rows int
	}{{"Spans", 4}, {"Counters", 2}, {"Instants", 1}} {
		p.until(`document.querySelector(".range-chooser button") !== null`)
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll(".range-chooser button")].find(b => b.innerText === %q).click()`, k.kind)))
		p.until(fmt.Sprintf(`[...document.querySelectorAll(".range-tables .table")].find(e => e.offsetParent)?.dataset.rows === "%d"`, k.rows))
		p.picture("TestMarks-range-" + k.kind)
	}
	if !strings.Contains(eval[string](p, `location.hash`), "ranged=instants") {
		t.Error("the address doesn't say which table is shown")
	}
}

func TestHostileTitlesAreText(t *testing.T) {
	path := made(t, "titles.reel", []string{"work"}, func(w *reel.Writer) {
		named := reel.Marker{Provider: "<b>p</b>", Name: "<i>m</i>\u202e", Category: "<img src=x onerror=window.harmed=9>", TitleArg: 0, IDArg: 1, ValueArg: 1,
			Arguments: []reel.Argument{{Name: "<u>title</u>", Kind: reel.ArgumentString}, {Name: "n", Kind: reel.ArgumentInt}}}
		var markers []reel.Marker
		for kind := reel.MarkInstant; kind <= reel.MarkCounter; kind++ {
			m := named
			m.Kind = kind
			markers = append(markers, m)
		}
		_, err := w.AddMarkers(markers)
		realtest.Must(t, err)
		var m madereel.Marks
		for i, s := range hostile {
			title, n := madereel.Text(s[:min(len(s), 8000)]), madereel.Number(uint64(i))
			at := uint64(1000 + 2000*i)
			for k, kind := range []reel.MarkKind{reel.MarkBegin, reel.MarkInstant, reel.MarkCounter, reel.MarkAsyncBegin, reel.MarkAsyncStep, reel.MarkFlowOut, reel.MarkEnd, reel.MarkFlowIn, reel.MarkAsyncEnd} {
				m.At(at+uint64(200*k), uint32(kind), title, n)
			}
		}
		m.Write(t, thread(t, w, 8, "main", reel.Entry(1000, 4096, 1), reel.Exit(100_000, 4096, 1)))
	})
	p := openSaid(t, path)
	check := func(where string) {
		t.Helper()
		if harmed := eval[bool](p, `"harmed" in window || document.querySelector("img, svg, i, b, u, body script") !== null`); harmed {
			t.Errorf("%s: a title was taken for more than text", where)
		}
		if raw := eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u2028]/.test(document.documentElement.innerHTML + document.title)`); raw {
			t.Errorf("%s: a character that turns text around, or can't be seen, is shown as it is", where)
		}
		if wide := eval[float64](p, `document.documentElement.scrollWidth`); wide > screenWidth {
			t.Errorf("%s: the page is %v pixels wide", where, wide)
		}
	}
	check("timeline")
	for _, mark := range []string{`{ kind: "span", lane: 0, row: 0, at: 1400 }`, `{ kind: "instant", lane: 0, row: 0, at: 1199 }`} {
		p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ mark: null }, true)`), chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.callreel.change({ mark: %s }, true)`, mark)))
		p.until(`document.querySelector(".panel-item").offsetParent !== null && document.querySelector(".panel-item").innerText.includes("<img src=x")`)
		check(mark)
	}
	p.press("r")
	for _, kind := range []string{"spans", "counters", "instants"} {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.callreel.change({ ranged: %q }, true)`, kind)))
		p.until(`Number([...document.querySelectorAll(".range-tables .table")].find(e => e.offsetParent)?.dataset.rows) > 5`)
		p.picture("TestHostileTitles-" + kind)
		check(kind)
	}
}
