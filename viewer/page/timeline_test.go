package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/callreel/callreel/internal/realtest"
)

var recorded struct {
	sync.Once
	bytes []byte
}

// real is a recording of a real program; it is made once.
func real(t testing.TB) string {
	t.Helper()
	realtest.Need(t, realtest.Chromium, realtest.Python3, realtest.LivePtrace)
	path := filepath.Join(t.TempDir(), "python.reel")
	recorded.Do(func() {
		python, err := realtest.Python3.Find()
		realtest.Must(t, err)
		realtest.MustCallreel(t, "record", "--ring", "256M", "-m", "python3*", "-o", path, "--", python, "-c", realtest.PythonDepths)
		recorded.bytes, err = os.ReadFile(path)
		realtest.Must(t, err)
	})
	if recorded.bytes == nil {
		t.Fatal("the recording failed in another test")
	}
	realtest.Must(t, os.WriteFile(path, recorded.bytes, 0o600))
	return path
}

// functionJSON is a function of `callreel report --json`, and of the page's tables.
type functionJSON struct {
	Name    string `json:"name"`
	Module  string `json:"module"`
	Calls   uint64 `json:"calls"`
	TotalNS uint64 `json:"total_ns"`
	SelfNS  uint64 `json:"self_ns"`
	P50NS   uint64 `json:"p50_ns"`
	P99NS   uint64 `json:"p99_ns"`
	MaxNS   uint64 `json:"max_ns"`
}

func reported(t testing.TB, path string) (functions []functionJSON, threads []string) {
	t.Helper()
	var r struct {
		Functions []functionJSON `json:"functions"`
		Threads   []struct {
			TID  int    `json:"tid"`
			Name string `json:"name"`
		} `json:"threads"`
	}
	realtest.Must(t, json.Unmarshal([]byte(realtest.MustCallreel(t, "report", path, "--json").Stdout), &r))
	for _, th := range r.Threads {
		threads = append(threads, fmt.Sprintf("tid %d", th.TID))
	}
	return r.Functions, threads
}

// painted is the part of the screen where an element is.
func (p *tab) painted(selector string) image.Image {
	p.Helper()
	b, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	realtest.Must(p, err)
	whole, err := png.Decode(bytes.NewReader(b))
	realtest.Must(p, err)
	r := p.rect(selector)
	return whole.(interface {
		SubImage(image.Rectangle) image.Image
	}).SubImage(image.Rect(int(r.Left), int(r.Top), int(r.Left+r.Width), int(r.Top+r.Height)))
}

// colors counts the pixels of each colour.
func colors(m image.Image) map[[3]uint8]int {
	n := map[[3]uint8]int{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			r, g, b, _ := m.At(x, y).RGBA()
			n[[3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}]++
		}
	}
	return n
}

// bar is one that has a label: where it is on the screen, and of what function.
type bar struct {
	X, Y, Width float64
	Func        int
	Name        string
}

// bars are the bars of single calls that have labels, as they are painted.
func (p *tab) bars() []bar {
	p.Helper()
	return eval[[]bar](p, `(() => {
		const t = window.callreel.tab().timeline, r = t.canvas.getBoundingClientRect();
		return t.painter.raster.labels.filter(l => l.calls === 1 && l.x1 - l.x0 > 40 && l.y > 0 && l.y < r.height - 30).map(l => ({
			X: r.left + (l.x0 + l.x1) / 2, Y: r.top + l.y + 5, Width: l.x1 - l.x0, Func: l.func, Name: t.names.get(l.func)?.name ?? "" }));
	})()`)
}

func TestTimelineShowsTheRecording(t *testing.T) {
	path := real(t)
	functions, threads := reported(t, path)
	p := open(t, path)
	p.press("c") // all lanes folded fit on the screen
	p.still()
	lanes := p.text(".lane-names")
	for _, name := range threads {
		if !strings.Contains(lanes, name) {
			t.Errorf("lanes %q: %s is missing", lanes, name)
		}
	}
	p.press("c")
	p.still()
	p.until(`Number(document.querySelector("canvas.lanes").dataset.labels) > 3`)
	known := map[string]bool{}
	for _, f := range functions {
		known[f.Name] = true
	}
	labelled := p.bars()
	if len(labelled) == 0 {
		t.Error("no bar of one call has room for its name")
	}
	for _, b := range labelled {
		if !known[b.Name] {
			t.Errorf("a bar is of %q, which the report doesn't have", b.Name)
		}
	}
	// Grounds, and at least a few functions' colours, each of a bar's size.
	large := 0
	for _, pixels := range colors(p.painted("canvas.lanes")) {
		if pixels > 200 {
			large++
		}
	}
	if large < 8 {
		t.Errorf("the lanes are painted in %d colours", large)
	}
	if columns := eval[string](p, `document.querySelector("canvas.overview").dataset.columns`); columns == "" || columns == "0" {
		t.Error("the overview has no columns")
	}
}

func TestZoomAndPan(t *testing.T) {
	p := open(t, real(t))
	all := p.visible()
	before := colors(p.painted("canvas.lanes"))
	p.press("www")
	p.still()
	in := p.visible()
	if want := all.length() / (1.35 * 1.35 * 1.35); math.Abs(in.length()-want) > want/50 {
		t.Errorf("three times W: %v ns are shown of %v, want %v", in.length(), all.length(), want)
	}
	if after := colors(p.painted("canvas.lanes")); fmt.Sprint(after) == fmt.Sprint(before) {
		t.Error("the picture is as before")
	}
	p.press("d")
	p.still()
	if w := p.visible(); w.From <= in.From || math.Abs(w.length()-in.length()) > 1 {
		t.Errorf("D goes from %v to %v", in, w)
	}

	// What is under the pointer stays there.
	lanes := p.rect("canvas.lanes")
	const x = 700
	at := func() float64 {
		w := p.visible()
		return w.From + (x-lanes.Left)/lanes.Width*w.length()
	}
	pointed, length := at(), p.visible().length()
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseWheel, x, lanes.Top+100, chromedp.ButtonModifiers(chromedp.ModifierCtrl), func(e *input.DispatchMouseEventParams) { e.DeltaX, e.DeltaY = 0.01, -200 }))
	p.until(fmt.Sprintf(`Number(document.querySelector("canvas.lanes").dataset.to) - Number(document.querySelector("canvas.lanes").dataset.from) < %f`, length*0.9))
	p.still()
	if now, pixel := at(), p.visible().length()/lanes.Width; math.Abs(now-pointed) > pixel {
		t.Errorf("the wheel moved what is under the pointer by %v pixels", (now-pointed)/pixel)
	}

	// Dragging moves it with the pointer.
	pointed = at()
	p.do(
		chromedp.MouseEvent(chromedp.MousePressed, x, lanes.Top+100, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, x-50, lanes.Top+100, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, x-150, lanes.Top+100, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, x-150, lanes.Top+100, chromedp.ButtonLeft),
	)
	p.still()
	w := p.visible()
	if got := w.From + (x-150-lanes.Left)/lanes.Width*w.length(); math.Abs(got-pointed) > w.length()/lanes.Width {
		t.Errorf("dragged by 150 pixels, %v is where %v was", got, pointed)
	}
	p.press(kb.Home)
	p.still()
	if w := p.visible(); w != all {
		t.Errorf("Home shows %v of %v", w, all)
	}
}

// selected is the call that the panel tells of.
type selected struct {
	Func     int     `json:"func"`
	Name     string  `json:"name"`
	Start    float64 `json:"start_ns"`
	Duration float64 `json:"duration_ns"`
	Row      int     `json:"row"`
}

func (p *tab) selected() selected {
	p.Helper()
	p.until(`!!window.callreel.tab().call?.callers`)
	return eval[selected](p, `window.callreel.tab().call`)
}

func TestFindGoesFromMatchToMatch(t *testing.T) {
	path := real(t)
	functions, _ := reported(t, path)
	p := open(t, path)
	p.press("f", chromedp.ModifierCtrl)
	p.press("Py*Dict_Set*")
	matches, calls := 0, uint64(0)
	for _, f := range functions {
		if ok, _ := filepath.Match("py*dict_set*", strings.ToLower(f.Name)); ok {
			matches++
			calls += f.Calls
		}
	}
	if matches < 2 {
		t.Fatalf("the report has %d such functions", matches)
	}
	// Before that there may be answers for the beginning of what was typed.
	p.until(fmt.Sprintf(`document.querySelector(".find").dataset.state === "still" && document.querySelector(".find-status").innerText.replaceAll(",", "") === %q`,
		fmt.Sprintf("%d functions %d calls", matches, calls)))
	step := func(keys string, modifiers ...chromedp.Modifier) selected {
		was := eval[float64](p, `window.callreel.tab().call?.start_ns ?? -1`)
		p.press(keys, modifiers...)
		p.until(fmt.Sprintf(`(window.callreel.tab().call?.start_ns ?? -1) !== %f && document.querySelector(".find").dataset.state === "still"`, was))
		p.still()
		return p.selected()
	}
	first := step(kb.Enter)
	second := step(kb.Enter)
	if !strings.Contains(first.Name, "Dict_Set") || !strings.Contains(second.Name, "Dict_Set") || second.Start <= first.Start {
		t.Errorf("the matches are %+v, then %+v", first, second)
	}
	if w := p.visible(); second.Start > w.To || second.Start+second.Duration < w.From {
		t.Errorf("the match at %v is not shown in %v", second.Start, w)
	}
	if back := step(kb.Enter, chromedp.ModifierShift); back != first {
		t.Errorf("back from %+v is %+v, not %+v", second, back, first)
	}
	p.picture("TestFind-matches")
}

func TestSelectedCallIsToldOf(t *testing.T) {
	p := open(t, real(t))
	p.until(`Number(document.querySelector("canvas.lanes").dataset.labels) > 3`)
	all := p.bars()
	b := all[len(all)-1]
	p.do(chromedp.MouseClickXY(b.X, b.Y))
	c := p.selected()
	if c.Name != b.Name || c.Func != b.Func {
		t.Fatalf("clicked on %+v, selected %+v", b, c)
	}
	facts := p.text(".call-facts")
	for _, want := range []string{c.Name, "Duration", "Self", "Start", "Thread", "Called by"} {
		if !strings.Contains(facts, want) {
			t.Errorf("%q is missing in %q", want, facts)
		}
	}
	p.until(`document.querySelectorAll(".panel .bucket:not(:disabled)").length > 0 && document.querySelectorAll(".panel .detail-calls .table-row").length > 0`)
	p.picture("TestSelected-panel")

	// A bucket's calls, and one of them.
	p.do(chromedp.Click(chromedp.CSS(".panel .bucket:not(:disabled)")))
	p.until(`document.querySelector(".detail-calls h3").innerText.startsWith("Calls of")`)
	p.until(`document.querySelectorAll(".panel .detail-calls .table-row").length > 0`)
	p.do(chromedp.Click(chromedp.CSS(".panel .detail-calls .table-row")))
	p.still()
	inBucket := p.selected()
	if inBucket.Func != c.Func {
		t.Errorf("a call of the bucket is of %q", inBucket.Name)
	}

	// The caller of it.
	p.do(chromedp.Click(chromedp.CSS(".callers button")))
	p.until(fmt.Sprintf(`window.callreel.tab().call?.row === %d`, inBucket.Row-1))
	caller := p.selected()
	if caller.Start > inBucket.Start || caller.Start+caller.Duration < inBucket.Start+inBucket.Duration {
		t.Errorf("the caller %+v doesn't contain %+v", caller, inBucket)
	}
	p.press("f")
	p.still()
	if w := p.visible(); w.From > caller.Start || w.To < caller.Start+caller.Duration || w.length() > 2*caller.Duration+100 {
		t.Errorf("fitted to %+v, it shows %v", caller, w)
	}
}

func TestTableOfARangeIsTheReport(t *testing.T) {
	path := real(t)
	functions, _ := reported(t, path)
	p := open(t, path)
	ruler := p.rect("canvas.ruler")
	y := ruler.Top + 10
	p.do(
		chromedp.MouseEvent(chromedp.MousePressed, ruler.Left, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, ruler.Left+200, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, ruler.Left+ruler.Width/2, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, ruler.Left+ruler.Width/2, y, chromedp.ButtonLeft),
	)
	p.until(`window.callreel.state.range !== null`)
	dragged, all := eval[struct{ From, To float64 }](p, `({ From: window.callreel.state.range.from, To: window.callreel.state.range.to })`), p.visible()
	if pixel := all.length() / ruler.Width; math.Abs(dragged.From-all.From) > pixel || math.Abs(dragged.To-all.From-all.length()/2) > 2*pixel {
		t.Errorf("dragged over the first half of %v: %v", all, dragged)
	}
	p.press("r")
	p.until(fmt.Sprintf(`window.callreel.state.range.to === %f && window.callreel.tab().rangePanel.functions.element.dataset.state === "still"`, all.To))
	p.until(`window.callreel.tab().rangePanel.functions.rows.length > 0`)
	shown := map[string]functionJSON{}
	for _, f := range eval[[]functionJSON](p, `window.callreel.tab().rangePanel.functions.rows`) {
		shown[f.Module+"!"+f.Name] = f
	}
	if len(shown) != len(functions) {
		t.Errorf("%d functions in the range, %d in the report", len(shown), len(functions))
	}
	wrong := 0
	for _, f := range functions {
		if got := shown[f.Module+"!"+f.Name]; got != f {
			if wrong++; wrong < 5 {
				t.Errorf("%+v\nin the report %+v", got, f)
			}
		}
	}

	// What is seen of it: most time first, then by calls, then what a filter leaves.
	first := func() string { return p.text(".panel-range .table-row") }
	p.do(chromedp.Click(chromedp.CSS(`.panel-range [role="columnheader"]:nth-child(2) button`)))
	most := functions[0]
	for _, f := range functions {
		if f.Calls > most.Calls {
			most = f
		}
	}
	p.until(fmt.Sprintf(`document.querySelector(".panel-range .table-row")?.innerText.includes(%q)`, most.Name))
	if row := strings.ReplaceAll(first(), ",", ""); !strings.Contains(row, fmt.Sprint(most.Calls)) {
		t.Errorf("the first row by calls is %q, want %d of %s", row, most.Calls, most.Name)
	}
	p.do(chromedp.SendKeys(chromedp.CSS(".panel-range input"), "dict_*item"))
	matching := 0
	for _, f := range functions {
		if ok, _ := filepath.Match("dict_*item", strings.ToLower(f.Name)); ok {
			matching++
		}
	}
	p.until(fmt.Sprintf(`document.querySelector(".panel-range .table").dataset.rows === "%d"`, matching))
}

func TestURLHoldsTheView(t *testing.T) {
	p := open(t, real(t))
	whole := p.visible()
	p.until(`Number(document.querySelector("canvas.lanes").dataset.labels) > 3`)
	all := p.bars()
	b := all[len(all)/2]
	p.do(chromedp.MouseClickXY(b.X, b.Y))
	c := p.selected()
	p.press("f")
	p.still()
	p.press("m")
	p.press("f", chromedp.ModifierCtrl)
	p.press("Py")
	p.until(`document.querySelector(".find").dataset.state === "still" && location.hash.includes("q=Py") && location.hash.includes("t=")`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	was, status := p.visible(), p.text(".find-status")

	p.do(chromedp.Reload())
	p.ready()
	if now := p.visible(); math.Abs(now.From-was.From) > 1 || math.Abs(now.To-was.To) > 1 {
		t.Errorf("after a reload it shows %v, before %v", now, was)
	}
	if again := p.selected(); again != c {
		t.Errorf("after a reload %+v is selected, before %+v", again, c)
	}
	p.until(fmt.Sprintf(`document.querySelector(".find-status").innerText === %q`, status))
	p.until(`window.callreel.tab().rangePanel.functions.rows.length > 0`)
	p.picture("TestURL-reloaded")

	// Tabs are in it, and the history.
	p.press("4")
	p.until(`location.hash.includes("tab=functions") && document.querySelectorAll(".functions-box .table-row").length > 3`)
	p.do(chromedp.Reload())
	p.ready()
	p.until(`document.querySelectorAll(".functions-box .table-row").length > 3`)
	p.do(chromedp.NavigateBack())
	p.until(`document.querySelector(".tab-timeline:not([hidden])") !== null`)
	p.still()
	if now := p.visible(); math.Abs(now.From-was.From) > 1 || math.Abs(now.To-was.To) > 1 {
		t.Errorf("back shows %v, before it was %v", now, was)
	}

	// A link with nonsense in it shows what it can.
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+"#tab=nothing&t=9-3&sel=x.y.z&range=-5-&h=7&lane=-1e9&closed=%zz&q=%E0%A4%A"))
	p.ready()
	if w := p.visible(); w != whole {
		t.Errorf("a senseless link shows %v", w)
	}
}
