package page_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// story is a thread's life as it is made up: what it calls, and what the scheduler does with it meanwhile.
type story struct {
	rng    *rand.Rand
	now    uint64
	sp     uint32
	open   []uint32
	events []reel.Event
	words  []reel.SchedEvent
	waits  []reel.Wait
}

func newStory(seed, at uint64) *story {
	s := &story{rng: rand.New(rand.NewPCG(seed, 9)), now: at, sp: 1 << 20}
	s.word(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(seed % 4)})
	return s
}

func (s *story) word(e reel.SchedEvent) {
	e.Time = s.now
	s.words = append(s.words, e)
}

func (s *story) enter(function uint32) {
	s.events = append(s.events, reel.Entry(s.now, s.sp, function))
	s.open = append(s.open, function)
	s.sp -= 64
	s.now += 64
}

func (s *story) leave() {
	s.now += 64
	s.sp += 64
	s.events = append(s.events, reel.Exit(s.now, s.sp, s.open[len(s.open)-1]))
	s.open = s.open[:len(s.open)-1]
	s.now += 64
}

// call makes a call that runs for so long.
func (s *story) call(function uint32, run uint64) {
	s.enter(function)
	s.run(run)
	s.leave()
}

func (s *story) run(ns uint64) { s.now += ns/2 + s.rng.Uint64N(ns+1) }

// wait is blocked until a time, ended by a thread, and then ready for a while.
func (s *story) wait(kind reel.SchedKind, until uint64, waker int32, w reel.Wait) {
	w.Time = s.now
	s.waits = append(s.waits, w)
	s.word(reel.SchedEvent{Kind: kind})
	s.now = max(until, s.now+1000)
	s.word(reel.SchedEvent{Kind: reel.SchedWoken, Waker: waker})
	s.now += 20_000 + s.rng.Uint64N(40_000)
	s.word(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(s.rng.IntN(4))})
}

func (s *story) preempted(ns uint64) {
	s.word(reel.SchedEvent{Kind: reel.SchedPreempted})
	s.now += ns
	s.word(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(s.rng.IntN(4))})
}

func (s *story) fault(major bool) {
	kind := reel.SchedMinorFault
	if major {
		kind = reel.SchedMajorFault
	}
	s.word(reel.SchedEvent{Kind: kind, Address: 0x7f0000001000})
}

var serverFunctions = []string{"worker_loop", "epoll_wait", "handle_request", "parse", "cache_get", "pthread_mutex_lock", "render", "evict", "hash_find", "fsync", "write_log"}

// waitsReel is a server whose worker-1 waits in pthread_mutex_lock from 60 to 100 ms for what worker-2 holds, and one thread that has states and no calls.
func waitsReel(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "server.reel")
	w := madereel.Create(t, path, reel.Header{StartUnixNS: 1, PID: 7, Arch: "amd64", Clock: madereel.Nanoseconds(1)}, reel.Image{Path: "/usr/bin/made"}, serverFunctions...)
	fillWaits(t, w)
	realtest.Must(t, w.Close())
	return path
}

func fillWaits(t testing.TB, w *reel.Writer) {
	realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}))
	request := func(s *story) {
		s.enter(3)
		s.call(4, 300_000)
		s.enter(5)
		for range 3 {
			s.call(9, 60_000)
		}
		s.leave()
		s.enter(7)
		if s.rng.IntN(3) == 0 {
			s.fault(false)
		}
		s.run(500_000)
		s.leave()
		s.leave()
	}
	idle := func(s *story, ns uint64) {
		s.enter(2)
		s.wait(reel.SchedBlocked, s.now+ns/2+s.rng.Uint64N(ns), reel.WakerKernel, reel.Wait{Syscall: 232, Args: [3]uint64{5}, Object: "epoll"})
		s.leave()
	}
	for i := range uint64(3) {
		s := newStory(i, 100_000*i+1)
		s.enter(1)
		for s.now < 150*ms {
			switch {
			case i == 0 && s.now > 55*ms && s.now < 60*ms:
				s.enter(3)
				s.call(4, 300_000)
				s.enter(5)
				s.enter(6)
				s.wait(reel.SchedBlocked, 100*ms, 102, reel.Wait{Syscall: 202, Args: [3]uint64{0x5581_c0de_4000}})
				s.leave()
				s.call(9, 60_000)
				s.leave()
				s.call(7, 600_000)
				s.leave()
			case i == 1 && s.now > 52*ms && s.now < 60*ms:
				s.enter(3)
				s.enter(8)
				for s.now < 80*ms {
					s.call(9, 200_000)
					if s.rng.IntN(12) == 0 {
						s.preempted(900_000)
					}
				}
				s.fault(true)
				s.enter(11)
				s.enter(10)
				s.wait(reel.SchedUninterruptible, 98*ms, reel.WakerKernel, reel.Wait{Syscall: 74, Args: [3]uint64{7}, Object: "/var/log/cache.log"})
				s.leave()
				s.leave()
				s.now = 100*ms - 1000
				s.run(1_500_000)
				s.leave()
				s.leave()
			default:
				request(s)
				if s.rng.IntN(6) == 0 {
					s.preempted(700_000)
				}
				idle(s, 2_500_000)
			}
		}
		for len(s.open) > 0 {
			s.leave()
		}
		s.word(reel.SchedEvent{Kind: reel.SchedBlocked})
		tw := thread(t, w, 101+int(i), fmt.Sprintf("worker-%d", i+1), s.events...)
		realtest.Must(t, tw.Sched(s.words))
		realtest.Must(t, tw.Waits(s.waits))
	}
	s := newStory(7, 20*ms)
	for s.now < 140*ms {
		s.run(400_000)
		s.wait(reel.SchedBlocked, s.now+9*ms, reel.WakerKernel, reel.Wait{Syscall: 230})
	}
	tw := thread(t, w, 104, "flusher")
	realtest.Must(t, tw.Sched(s.words))
	realtest.Must(t, w.ClockPair(152*ms, 152*ms))
	w.SchedKnown(152 * ms)
}

// Colours of states in the light theme.
var (
	colorRunning = [3]uint8{38, 140, 92}
	colorReady   = [3]uint8{240, 168, 28}
	colorBlocked = [3]uint8{206, 212, 221}
	colorDisk    = [3]uint8{176, 98, 190}
	colorMajor   = [3]uint8{196, 28, 40}
)

func TestThreadsHaveARowOfStates(t *testing.T) {
	p := open(t, waitsReel(t))
	p.until(`Number(document.querySelector("canvas.lanes").dataset.states) > 20`)
	if lanes := p.text(".lane-names"); !strings.Contains(lanes, "flusher") {
		t.Errorf("the thread without calls isn't among %q", lanes)
	}
	painted := colors(p.painted("canvas.lanes"))
	for what, c := range map[string][3]uint8{"running": colorRunning, "ready": colorReady, "blocked": colorBlocked, "state D": colorDisk, "major page faults": colorMajor} {
		if painted[c] < 4 {
			t.Errorf("%s: %d pixels", what, painted[c])
		}
	}
	if painted[colorBlocked] < 4*painted[colorReady] {
		t.Errorf("threads mostly wait: %d pixels are blocked, %d ready", painted[colorBlocked], painted[colorReady])
	}
	// Calls are hatched where their thread waited, and nowhere else.
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.tab().timeline.show({ from: 50e6, to: 105e6 }, false)`))
	p.still()
	p.until(`Number(document.querySelector("canvas.lanes").dataset.hatched) > 5`)
	along := func(name string, row float64) int {
		for _, b := range p.bars() {
			if b.Name != name || b.Width < 200 {
				continue
			}
			line := p.line(b.X+b.Width/4, b.Y+row, b.Width/5)
			return len(slices.Compact(line))
		}
		t.Fatalf("no wide bar of %s", name)
		return 0
	}
	if n := along("pthread_mutex_lock", 8); n < 20 {
		t.Errorf("along a call that waits the colour changes %d times", n)
	}
	if n := along("fsync", 8); n < 20 {
		t.Errorf("along a call in state D the colour changes %d times", n)
	}
	p.media("dark")
	p.still()
	p.picture("TestThreadsHaveARowOfStates-dark")
}

// line are the pixels of the screen from a point on to the right.
func (p *tab) line(x, y, width float64) [][3]uint8 {
	p.Helper()
	m := p.painted("body")
	var line [][3]uint8
	for dx := range int(width) {
		r, g, b, _ := m.At(int(x)+dx, int(y)).RGBA()
		line = append(line, [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)})
	}
	return line
}

func TestWithoutStatesThereIsNoRow(t *testing.T) {
	p := open(t, made(t, "plain.reel", []string{"main"}, func(w *reel.Writer) {
		thread(t, w, 8, "main", reel.Entry(1000, 1<<20, 1), reel.Exit(900_000, 1<<20, 1))
	}))
	if d := eval[string](p, `document.querySelector("canvas.lanes").dataset.states`); d != "0" {
		t.Errorf("%s stretches of states", d)
	}
	if top := eval[float64](p, `(() => { const t = window.callreel.tab().timeline; return t.layout.rowTop(t.layout.slots[0], 0) })()`); top != 4 {
		t.Errorf("the first row begins at %v", top)
	}
	p.press("r")
	p.until(`document.querySelector(".panel-range .table").dataset.rows === "1"`)
	if n := eval[int](p, `document.querySelectorAll(".segments.by, .split").length`); n != 0 {
		t.Errorf("%d elements speak of states", n)
	}
}

func TestStateUnderThePointerIsTold(t *testing.T) {
	p := open(t, waitsReel(t))
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.tab().timeline.show({ from: 50e6, to: 105e6 }, false)`))
	p.still()
	lanes := p.rect("canvas.lanes")
	at := eval[rect](p, `(() => { const t = window.callreel.tab().timeline, s = t.layout.slots.find((s) => s.lane.tid === 101); return { Left: 0, Top: t.layout.stripTop(s) - t.top + 3, Width: 0, Height: 0 } })()`)
	x, y := lanes.Left+lanes.Width/2, lanes.Top+at.Top
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	p.until(`document.querySelector(".lane-pane .tip").innerText.includes("woken by worker-2")`)
	if tip := p.text(".lane-pane .tip"); !strings.Contains(tip, "blocked") || !strings.Contains(tip, "in pthread_mutex_lock") || !strings.Contains(tip, "futex") {
		t.Errorf("the tip is %q", tip)
	}
	p.do(chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft), chromedp.MouseEvent(chromedp.MouseReleased, x, y, chromedp.ButtonLeft))
	p.until(`!document.querySelector(".panel-state").hidden && document.querySelector(".panel-state").innerText.includes("was in evict")`)
	p.until(`document.querySelector("canvas.lanes").dataset.arrows === "1" && location.hash.includes("st=")`)
	p.picture("TestStateUnderThePointerIsTold-selected")
	p.do(chromedp.Reload())
	p.ready()
	p.until(`document.querySelector(".panel-state").innerText.includes("pthread_mutex_lock")`)
}

// waitingCall selects the request that waited for the lock.
func (p *tab) waitingCall() {
	p.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](`(() => { const t = window.callreel.tab(); t.timeline.show({ from: 50e6, to: 105e6 }, false); window.callreel.change({ selected: { lane: 0, row: 1, at: 80e6 } }, true) })()`))
	p.until(`window.callreel.tab().call?.name === "handle_request" && !document.querySelector(".waits").hidden && document.querySelector(".waits").dataset.state === "still"`)
	p.still()
}

func TestCallSaysWhatItWaitedForAndWhoEndedThat(t *testing.T) {
	p := open(t, waitsReel(t))
	p.waitingCall()
	for _, want := range []string{"in pthread_mutex_lock", "on mutex 0x5581c0de4000", "woken by worker-2 (102)", "was in evict"} {
		if got := strings.Join(strings.Fields(p.text(".waits")), " "); !strings.Contains(got, want) {
			t.Errorf("%q doesn't say %q", got, want)
		}
	}
	if got := p.text(".call-facts .facts"); !strings.Contains(got, "blocked 43.") {
		t.Errorf("%q doesn't say how long it was blocked", got)
	}
	if n := eval[string](p, `document.querySelector("canvas.lanes").dataset.arrows`); n != "1" {
		t.Errorf("%s arrows", n)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".waits button")].find((b) => b.innerText.includes("worker-2 (102)")).click()`))
	p.until(`window.callreel.tab().call?.name === "evict"`)
}

func TestTablesAndGraphsAreByState(t *testing.T) {
	p := open(t, waitsReel(t))
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.change({ range: { from: 50e6, to: 105e6 } }, true)`))
	first := func() string {
		p.Helper()
		return eval[string](p, `(() => { const t = document.querySelector(".panel-range .table"); return t.querySelector(".table-row .name").innerText })()`)
	}
	by := func(box, what string) {
		p.Helper()
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll(%q)].find((b) => b.innerText === %q).click()`, box+" .segments.by button", what)))
	}
	sorted := func(title, want string) {
		p.Helper()
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll(".panel-range .table-head button")].find((b) => b.innerText === %q).click()`, title)))
		p.until(fmt.Sprintf(`document.querySelector(".panel-range .table-row .name")?.innerText === %q`, want))
	}
	p.until(`Number(document.querySelector(".panel-range .table").dataset.rows) > 8`)
	sorted("Self", "epoll_wait")
	by(".panel-range", "CPU")
	p.until(`document.querySelector(".panel-range .table-head").innerText.includes("Self cpu")`)
	if name := first(); name == "epoll_wait" {
		t.Errorf("by CPU time %s comes first", name)
	}
	p.picture("TestTablesAndGraphsAreByState-cpu")
	by(".panel-range", "Blocked")
	p.until(`document.querySelector(".panel-range .table-row .name")?.innerText === "epoll_wait" && location.hash.includes("by=blocked")`)

	p.press("2")
	p.until(`document.querySelector(".tab-analysis").dataset.state === "still" && Number(document.querySelector("canvas.flame").dataset.bars) > 3`)
	blocked := p.text(".analysis-bar")
	if !strings.Contains(blocked, "blocked in calls") {
		t.Errorf("%q", blocked)
	}
	by(".tab-analysis", "CPU")
	p.until(`document.querySelector(".tab-analysis").dataset.state === "still" && document.querySelector(".analysis-bar").innerText.includes("on a processor in calls")`)
}

func TestWhyIsShownAndThePeerIsAligned(t *testing.T) {
	realtest.Need(t, realtest.Chromium)
	path := waitsReel(t)
	peer := func(f *reel.File, id viewer.CallID) (found *viewer.CallID) {
		var pairer reel.Pairer
		f.ReadyPairer(&pairer, 3)
		pairer.OnCall = func(c *reel.Call) {
			if found == nil && c.Func == id.Function && c.Start > 30*ms {
				found = &viewer.CallID{Thread: 3, Start: c.Start, Function: c.Func}
			}
		}
		f.ReadThread(3, func(events []reel.Event, _ bool) bool {
			pairer.Push(events)
			return true
		})
		return found
	}
	_, url := serve(t, viewer.Options{Paths: []string{path}, Explain: func(_ context.Context, f *reel.File, id viewer.CallID) (*viewer.Explanation, error) {
		return &viewer.Explanation{Peer: peer(f, id), Lines: []viewer.ExplanationLine{
			{Kind: "head", Text: "It is slow in one place: <b>" + hostile[0]},
			{Kind: "cause", Text: "43 ms more in cache_get > pthread_mutex_lock", Thread: id.Thread, From: 60 * ms, To: 99 * ms},
			{Kind: "more", Text: "worker-2 was in fsync", Thread: 2, From: 82 * ms, To: 97 * ms},
			{Kind: "note", Text: "few peers"},
		}}, nil
	}})
	p := show(t, url)
	p.waitingCall()
	p.press("y")
	p.until(`!document.querySelector(".panel-why").hidden && document.querySelectorAll(".why-lines li").length === 4`)
	if got := p.text(".panel-why"); !strings.Contains(got, "pthread_mutex_lock") || !strings.Contains(got, "<b>") {
		t.Errorf("%q", got)
	}
	p.do(chromedp.Click(chromedp.CSS(".why-head button")))
	p.until(`!document.querySelector(".peer").hidden && document.querySelector(".peer canvas.lanes").dataset.state === "still"`)
	off := func() float64 {
		return eval[float64](p, `(() => { const t = window.callreel.tab(), a = t.timeline.visible, b = t.peer.timeline.visible; return (b.from - t.peer.peer.start_ns) - (a.from - t.why.call.start_ns) + (b.to - b.from) - (a.to - a.from) })()`)
	}
	if d := off(); math.Abs(d) > 1 {
		t.Errorf("the peer is %v ns off", d)
	}
	p.press("wwd")
	p.still()
	if d := off(); math.Abs(d) > 1 {
		t.Errorf("after zooming the peer is %v ns off", d)
	}
	p.picture("TestWhyIsShownAndThePeerIsAligned-peer")
	p.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".why-lines button")].find((b) => b.innerText.includes("fsync")).click()`))
	p.still()
	if w := p.visible(); w.From > 82*ms || w.To < 97*ms || w.length() > 55*ms || math.Abs((w.From+w.To)/2-89.5*ms) > ms {
		t.Errorf("the line leads to %v", w)
	}
	p.press("?")
	p.until(`document.querySelector("dialog.help").open && document.querySelector("dialog.help").innerText.includes("row above a thread")`)
	p.picture("TestWhyIsShownAndThePeerIsAligned-help")
}
