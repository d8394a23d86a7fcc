package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// hostile are names that would do harm, or deceive, if they were taken for anything but text.
var hostile = []string{
	`<img src=x onerror="window.harmed=1">`,
	`</script><script>window.harmed=2</script>`,
	`"><svg onload=window.harmed=3>`,
	"user\u202etxt.exe\u2066", // turns the text around
	"nul\x00bell\x07line\nbreak\u2028",
	"not UTF-8 \xff\xfe",
	strings.Repeat("very_long_name::", 8192),
	"javascript:window.harmed=4",
	"__proto__",
	"constructor",
	"",
	" ",
	"עברית",
	strings.Repeat("̸̨̛", 200), // piles of accents
}

func hostileReel(t testing.TB) string {
	return made(t, "<b>&\u202eleer.reel", hostile, func(w *reel.Writer) {
		var events []reel.Event
		for i := range hostile {
			events = append(events, reel.Entry(uint64(1000+i), uint32(1<<20-16*i), uint32(i+1)))
		}
		for i := len(hostile) - 1; i >= 0; i-- {
			events = append(events, reel.Exit(uint64(900_000-1000*i), uint32(1<<20-16*i), uint32(i+1)))
		}
		thread(t, w, 8, "<i>thread</i>\u202e", events...)
	})
}

func TestHostileNamesAreText(t *testing.T) {
	p := open(t, hostileReel(t))
	check := func(where string) {
		t.Helper()
		if harmed := eval[bool](p, `"harmed" in window || document.querySelector("img, svg, i, b, body script") !== null`); harmed {
			t.Errorf("%s: a name was taken for more than text", where)
		}
		if raw := eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u2028]/.test(document.documentElement.innerHTML + document.title)`); raw {
			t.Errorf("%s: a character that turns text around, or can't be seen, is shown as it is", where)
		}
		if wide := eval[float64](p, `document.documentElement.scrollWidth`); wide > screenWidth {
			t.Errorf("%s: the page is %v pixels wide", where, wide)
		}
	}
	check("timeline")
	for row := range hostile {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.callreel.change({ selected: { lane: 0, row: %d, at: 400000 } }, true)`, row)))
		p.until(fmt.Sprintf(`window.callreel.tab().call?.row === %d`, row))
	}
	check("selected")
	p.press("r")
	p.until(fmt.Sprintf(`document.querySelector(".panel-range .table").dataset.rows === "%d"`, len(hostile)))
	p.picture("TestHostile-range")
	check("range")
	for i, tab := range []string{"flame", "tree", "functions"} {
		p.press(fmt.Sprint(i + 2))
		p.until(fmt.Sprintf(`location.hash.includes("tab=%s") && document.querySelector(".tab-analysis").dataset.state === "still"`, tab))
		p.picture("TestHostile-" + tab)
		check(tab)
	}
	if names := p.text(".functions-box"); !strings.Contains(names, "user‹202E›txt.exe") || !strings.Contains(names, "<img src=x") {
		t.Errorf("the names are not shown as they are: %.500q", names)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`window.callreel.findName("<img src=x")`))
	p.until(`document.querySelector(".find-status").innerText.startsWith("1 function")`)
	check("find")
}

func TestTruncatedReelIsShownAndSaid(t *testing.T) {
	whole, err := os.ReadFile(real(t))
	realtest.Must(t, err)
	path := filepath.Join(t.TempDir(), "cut.reel")
	realtest.Must(t, os.WriteFile(path, whole[:len(whole)*6/10], 0o600))
	p := open(t, path)
	p.until(`Number(document.querySelector("canvas.lanes").dataset.bars) > 50`)
	if top := p.text(".file"); !strings.Contains(top, "not closed") && !strings.Contains(top, "damaged") {
		t.Errorf("nothing says that the reel is cut: %q", top)
	}
}

func TestLostEventsAreHatched(t *testing.T) {
	path := made(t, "lost.reel", []string{"work"}, func(w *reel.Writer) {
		th := thread(t, w, 8, "worker")
		for i := range uint64(20) {
			if i == 10 {
				realtest.Must(t, th.Dropped(5000, 5000, 11_500_000))
				continue
			}
			realtest.Must(t, th.Append([]reel.Event{reel.Entry(i*1_000_000+1_000_000, 4096, 1), reel.Exit(i*1_000_000+1_400_000, 4096, 1)}))
		}
	})
	p := open(t, path)
	amber := colors(p.painted("canvas.lanes"))[[3]uint8{193, 120, 23}]
	if amber < 40 {
		t.Errorf("%d pixels are hatched", amber)
	}
	if top := p.text(".file"); !strings.Contains(top, "5,000 lost") {
		t.Errorf("the bar above doesn't say what is lost: %q", top)
	}
}

// readable finds texts that have too little contrast to their grounds, by WCAG 2.2's formula; 4.5 is its level AA.
const readable = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
	const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
		if (!own || !e.checkVisibility() || e.matches(":disabled, :disabled *, option, noscript")) continue;
		let ground = [0, 0, 0, 0];
		for (let a = e; a && ground[3] < 1; a = a.parentElement) ground = over(ground, parse(getComputedStyle(a).backgroundColor)).slice(0, 3).concat(Math.min(1, ground[3] + parse(getComputedStyle(a).backgroundColor)[3]));
		const [x, y] = [light(over(parse(getComputedStyle(e).color), ground)), light(ground)];
		const contrast = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		if (contrast < 4.5) bad.push(e.className + " " + e.textContent.slice(0, 30) + " " + contrast.toFixed(2));
	}
	return bad;
})()`

func TestLightAndDarkAreReadable(t *testing.T) {
	p := open(t, real(t))
	p.press(kb.Enter)
	p.selected()
	grounds := map[string]bool{}
	for _, theme := range []string{"light", "dark"} {
		p.media(theme)
		p.until(fmt.Sprintf(`document.documentElement.dataset.theme === %q`, theme))
		p.still()
		grounds[eval[string](p, `getComputedStyle(document.body).backgroundColor`)] = true
		for _, tab := range []string{"1", "3", "4", "2"} {
			p.press(tab)
			p.until(`[...document.querySelectorAll("[data-state]")].filter(e => e.offsetParent).every(e => e.dataset.state !== "loading")`)
			if bad := eval[[]string](p, readable); len(bad) > 0 {
				t.Errorf("%s, tab %s: too little contrast: %q", theme, tab, bad)
			}
			p.picture("TestLightAndDark-" + theme + "-" + tab)
		}
		p.press("1")
		p.still()
	}
	if len(grounds) != 2 {
		t.Errorf("light and dark have the grounds %v", grounds)
	}
	p.press("t") // from the system's dark to light
	p.until(`document.documentElement.dataset.theme === "light"`)
	p.do(chromedp.Reload())
	p.ready()
	if theme := eval[string](p, `document.documentElement.dataset.theme`); theme != "light" {
		t.Errorf("after a reload the theme is %s", theme)
	}
	p.press("tt")
	p.until(`document.documentElement.dataset.theme === "dark"`)
}

func TestKeyboardAloneIsEnough(t *testing.T) {
	p := open(t, real(t))
	// Tab comes by everything, and what has the focus can be seen.
	reached := map[string]bool{}
	for range 60 {
		p.press(kb.Tab)
		at := eval[struct {
			What    string
			Outline string
		}](p, `(() => { const e = document.activeElement, s = getComputedStyle(e); return { What: e.getAttribute("aria-label") || e.textContent.slice(0, 40), Outline: s.outlineStyle + " " + s.outlineWidth } })()`)
		if eval[bool](p, `document.activeElement === document.body`) {
			continue // behind the last and before the first
		}
		reached[at.What] = true
		if !strings.HasPrefix(at.Outline, "solid") {
			t.Errorf("the focus on %q can't be seen: %s", at.What, at.Outline)
		}
	}
	for _, want := range []string{"Timeline", "Functions", "Find functions by name or glob", "Next match", "Keyboard help", "Order of lanes", "Colours"} {
		if !reached[want] {
			t.Errorf("Tab doesn't come by %q; it does by %v", want, reached)
		}
	}
	found := func(prefix string) bool {
		for r := range reached {
			if strings.HasPrefix(r, prefix) {
				return true
			}
		}
		return false
	}
	for _, want := range []string{"Timeline of calls", "Visible range within", "rows of", "Theme"} {
		if !found(want) {
			t.Errorf("Tab doesn't come by %q; it does by %v", want, reached)
		}
	}

	// From call to call.
	p.do(chromedp.Focus(chromedp.CSS("canvas.lanes")))
	p.still()
	p.press(kb.Enter)
	outer := p.selected()
	p.press(kb.ArrowDown, chromedp.ModifierShift)
	p.until(fmt.Sprintf(`window.callreel.tab().call?.row === %d`, outer.Row+1))
	inner := p.selected()
	if inner.Start < outer.Start || inner.Start+inner.Duration > outer.Start+outer.Duration {
		t.Errorf("%+v is not within %+v", inner, outer)
	}
	p.press(kb.ArrowUp, chromedp.ModifierShift)
	p.until(fmt.Sprintf(`window.callreel.tab().call?.row === %d`, outer.Row))
	p.press("m")
	p.until(`location.hash.includes("range=")`)
	p.press(kb.Escape)
	p.until(`!location.hash.includes("range=")`)
	p.press(kb.Escape)
	p.until(`!location.hash.includes("sel=") && document.querySelector(".panel").hidden`)

	// Tables and trees.
	p.press("4")
	p.until(`document.querySelectorAll(".functions-box .table-row").length > 3`)
	p.do(chromedp.Focus(chromedp.CSS(".functions-box > .table .table-scroll")))
	p.press(kb.ArrowDown + kb.ArrowDown + kb.Enter)
	p.until(`document.querySelector(".functions-box.with-detail .detail-calls .table-row") !== null`)
	p.do(chromedp.Focus(chromedp.CSS(".functions-box .detail-calls .table-scroll")))
	p.press(kb.ArrowDown + kb.Enter)
	p.until(`location.hash.includes("sel=") && !location.hash.includes("tab=")`)
	p.press("3")
	p.until(`document.querySelectorAll(".tree .table-row").length > 3`)
	p.do(chromedp.Focus(chromedp.CSS(".tree .table-scroll")))
	p.press(kb.ArrowLeft)
	p.until(`document.querySelectorAll(".tree [aria-expanded=true]").length === 0 || document.querySelectorAll(".tree .table-row").length < 5`)
	p.press("2")
	p.until(`Number(document.querySelector("canvas.flame").dataset.bars) > 3`)
	p.do(chromedp.Focus(chromedp.CSS("canvas.flame")))
	p.press(kb.ArrowDown + kb.ArrowDown + kb.Enter)
	p.until(`document.querySelectorAll(".flame-status .crumb").length === 3`)

	// Help is a dialog that Escape closes.
	p.press("?")
	p.until(`document.querySelector("dialog.help").open`)
	p.picture("TestKeyboard-help")
	p.press(kb.Escape)
	p.until(`!document.querySelector("dialog.help").open`)
}

func TestThousandsOfLanesAreScrolled(t *testing.T) {
	const lanes = 3000
	path := made(t, "lanes.reel", []string{"work", "inner"}, func(w *reel.Writer) {
		for i := range uint64(lanes) {
			thread(t, w, int(100+i), fmt.Sprintf("worker-%d", i),
				reel.Entry(1000+i*100, 4096, 1), reel.Entry(2000+i*100, 4000, 2), reel.Exit(500_000+i*100, 4000, 2), reel.Exit(600_000+i*100, 4096, 1))
		}
	})
	p := open(t, path)
	p.until(`Number(document.querySelector("canvas.lanes").dataset.bars) > 20`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".lane-scroll").scrollTop = 1e9`))
	p.until(fmt.Sprintf(`document.querySelector(".lane-names").innerText.includes("worker-%d")`, lanes-1))
	p.still()
	if n := eval[int](p, `document.querySelectorAll(".lane").length`); n > 100 {
		t.Errorf("%d lanes are elements", n)
	}
	if n := eval[string](p, `document.querySelector("canvas.lanes").dataset.bars`); n == "0" {
		t.Error("the last lanes are empty")
	}
}
