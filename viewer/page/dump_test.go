package page_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

const ms = 1_000_000

// dumped is a dump of 2 s of a server: its clock began an hour before, in thread 8 a call of `call` took 43 ms in the midst of short
// ones, thread 9 waits since the beginning, thread 10 works, and does not return from loop.
func dumped(t testing.TB, more ...reel.Trigger) string {
	const from = 3600 * 1000 * ms
	at := func(x uint64) uint64 { return from + x*ms }
	return made(t, "slow-0001.reel", []string{"serve", "call", "wait", "loop", "step"}, func(w *reel.Writer) {
		var events []reel.Event
		for i := range uint64(200) {
			if i >= 80 && i < 86 {
				continue
			}
			events = append(events, reel.Entry(at(10*i), 1<<20, 1), reel.Entry(at(10*i)+1000, 1<<20-64, 2), reel.Exit(at(10*i)+ms, 1<<20-64, 2), reel.Exit(at(10*i+8), 1<<20, 1))
			if i == 79 {
				events = append(events, reel.Entry(at(800), 1<<20, 1), reel.Entry(at(801), 1<<20-64, 2), reel.Exit(at(844), 1<<20-64, 2), reel.Exit(at(845), 1<<20, 1))
			}
		}
		thread(t, w, 8, "server", events...)
		thread(t, w, 9, "waiter", reel.Entry(ms, 2<<20, 3), reel.Entry(at(5), 2<<20-64, 5), reel.Exit(at(6), 2<<20-64, 5))
		thread(t, w, 10, "worker", reel.Entry(at(1500), 3<<20, 4), reel.Entry(at(1501), 3<<20-64, 5), reel.Exit(at(1502), 3<<20-64, 5))
		slow := reel.Trigger{Condition: "call > 20ms", Function: 2, Thread: 1, Start: at(801), End: at(844), SP: 1<<20 - 64}
		realtest.Must(t, w.Dump(reel.Dump{From: from, To: at(2000), Triggers: append([]reel.Trigger{slow}, more...), Missing: []reel.Missing{{Thread: 3, From: from, To: at(1000)}}}))
	})
}

func (p *tab) selectedCall() (name string) {
	p.Helper()
	p.until(`window.callreel.tab().call !== null && document.querySelector(".call-facts .call-name") !== null`)
	p.still()
	return p.text(".call-facts .call-name")
}

func TestDumpOpensAtTheSlowCall(t *testing.T) {
	const from = 3600 * 1000 * ms
	p := open(t, dumped(t))
	if name := p.selectedCall(); name != "call" {
		t.Fatalf("%q is selected", name)
	}
	w := p.visible()
	if share := 43 * ms / w.length(); share < 0.45 || share > 0.55 {
		t.Errorf("the call takes %.2f of the screen, which shows %.0f to %.0f", share, w.From, w.To)
	}
	if middle := (w.From + w.To) / 2; math.Abs(middle-(from-ms+822.5*ms)) > 2*ms {
		t.Errorf("the middle of the screen is %.0f", middle)
	}
	if text := p.text(".call-facts"); !strings.Contains(text, "trigger: call > 20ms, took 43 ms") {
		t.Errorf("the panel says %q", text)
	}
	if text := p.text(".dump-bar"); !strings.Contains(text, "call > 20ms") || !strings.Contains(text, "took 43 ms") || !strings.Contains(text, "thread 8 server") || !strings.Contains(text, "1 stretch missing") {
		t.Errorf("the strip says %q", text)
	}
	if n := eval[string](p, `document.querySelector("canvas.lanes").dataset.marked`); n != "1" {
		t.Errorf("%s triggers are marked", n)
	}
	if n := eval[int](p, `document.querySelectorAll(".lane .flag").length`); n != 1 {
		t.Errorf("%d lanes have a flag", n)
	}
	red := [3]uint8{0xb3, 0x22, 0x1a}
	for _, where := range []string{"canvas.ruler", "canvas.lanes", "canvas.overview"} {
		if n := colors(p.painted(where))[red]; n < 20 {
			t.Errorf("%s has %d pixels of the mark", where, n)
		}
	}
	// Home shows the dump's window, not the hour before it, which B adds.
	p.press("0")
	p.still()
	if w := p.visible(); math.Abs(w.From-(from-ms)) > 1 || math.Abs(w.length()-2000*ms) > 1 {
		t.Errorf("all of it is %.0f to %.0f", w.From, w.To)
	}
	p.picture("TestDump-whole")
	if hatched := colors(p.painted("canvas.lanes"))[[3]uint8{193, 120, 23}]; hatched < 1000 {
		t.Errorf("what is missing has %d pixels", hatched)
	}
	p.press("b")
	p.still()
	if w := p.visible(); w.From != 0 {
		t.Errorf("what is before the window isn't shown: %.0f to %.0f", w.From, w.To)
	}
	p.picture("TestDump-before")
	p.press("b")
	p.press("g")
	p.still()
	if w := p.visible(); math.Abs(43*ms/w.length()-0.5) > 0.05 {
		t.Errorf("g shows %.0f to %.0f", w.From, w.To)
	}
}

func TestDumpsTriggersAreSteppedThrough(t *testing.T) {
	const from = 3600 * 1000 * ms
	p := open(t, dumped(t,
		reel.Trigger{Condition: "loop > 100ms", Function: 4, Thread: 3, Start: from + 1500*ms, SP: 3 << 20},
		reel.Trigger{Kind: reel.TriggerEnd, Thread: 3, Start: from + 1999*ms, Detail: "signal \u202eSIGSEGV"}))
	p.selectedCall()
	p.press("g")
	p.until(`window.callreel.tab().call?.name === "loop"`)
	p.still()
	if text := p.text(".call-facts"); !strings.Contains(text, "loop > 100ms, not returned after 500 ms") {
		t.Errorf("the panel says %q", text)
	}
	if text := p.text(".dump-bar"); !strings.Contains(text, "2 / 3") {
		t.Errorf("the strip says %q", text)
	}
	p.picture("TestDump-open")
	p.press("g")
	p.until(`document.querySelector(".dump-bar").innerText.includes("3 / 3")`)
	if text := p.text(".dump-bar"); !strings.Contains(text, "end of the process") || strings.Contains(text, "\u202e") {
		t.Errorf("the strip says %q", text)
	}
	p.press("G")
	p.until(`window.callreel.tab().call?.name === "loop"`)
	p.press("g")
	p.press("g")
	p.until(`window.callreel.tab().call?.name === "call"`)
	p.still()
}

func TestURLWithAViewWinsOverTheTrigger(t *testing.T) {
	p := open(t, dumped(t))
	p.selectedCall()
	q := show(t, p.url+"#t=3600099000000-3600199000000")
	if w := q.visible(); w.From != 3600099*ms || w.To != 3600199*ms {
		t.Errorf("shown are %.0f to %.0f", w.From, w.To)
	}
	if eval[bool](q, `window.callreel.tab().call !== null`) {
		t.Error("a call is selected")
	}
}

func TestTwoDumpsEachOpenAtTheirCall(t *testing.T) {
	p := open(t, dumped(t), dumped(t))
	p.selectedCall()
	p.do(chromedp.Click(`.segments:not(.pausing) button:nth-child(2)`))
	p.until(`window.callreel.state.reel === 1 && window.callreel.tab().call?.name === "call"`)
	p.still()
	if w := p.visible(); math.Abs(43*ms/w.length()-0.5) > 0.05 {
		t.Errorf("the second shows %.0f to %.0f", w.From, w.To)
	}
	p.press("5")
	p.until(`document.querySelector(".tab-compare canvas.lanes")?.dataset.state === "still"`)
}

// What the recorder writes, and not only what a test does, opens at its call.
func TestRealDumpOpensAtItsCall(t *testing.T) {
	realtest.Need(t, realtest.Chromium, realtest.Python3, realtest.LivePtrace)
	python, err := realtest.Python3.Find()
	realtest.Must(t, err)
	folder := filepath.Join(t.TempDir(), "dumps")
	realtest.MustCallreel(t, "record", "-m", "python3*", "-f", "PyThread*", "-f", "_PyEval*", "--when", "PyThread_acquire_lock_timed > 60ms", "--max", "1", "-o", folder, "--", python, "-c", `
import threading, json
lock = threading.Lock()
lock.acquire()
for i in range(20):
    json.loads(json.dumps({"a": [1, 2, {"b": "c" * i}]}))
lock.acquire(timeout=0.08)
for i in range(20):
    json.dumps({"a": i})
`)
	path := filepath.Join(folder, "slow-0001.reel")
	var r struct {
		Trigger struct {
			Name       string
			TID        int
			DurationNS float64 `json:"duration_ns"`
		}
	}
	realtest.Must(t, json.Unmarshal([]byte(realtest.MustCallreel(t, "report", path, "--json").Stdout), &r))
	if r.Trigger.Name != "PyThread_acquire_lock_timed" || r.Trigger.TID == 0 || r.Trigger.DurationNS < 60*ms {
		t.Fatalf("the trigger is %+v", r.Trigger)
	}
	p := open(t, path)
	if name := p.selectedCall(); name != r.Trigger.Name {
		t.Errorf("%q is selected", name)
	}
	if share := r.Trigger.DurationNS / p.visible().length(); share < 0.4 || share > 1 {
		t.Errorf("the call takes %.2f of the screen", share)
	}
	if text := p.text(".call-facts"); !strings.Contains(text, "trigger: PyThread_acquire_lock_timed > 60ms, took ") {
		t.Errorf("the panel says %q", text)
	}
}
