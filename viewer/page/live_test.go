package page_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

func TestRecordingInProgressIsFollowed(t *testing.T) {
	realtest.Need(t, realtest.Chromium)
	path := filepath.Join(t.TempDir(), "live.reel")
	w := begin(t, path, []string{"tick"})
	th := thread(t, w, 8, "ticker")
	now := uint64(1000)
	grow := func() {
		for range 100 {
			realtest.Must(t, th.Append([]reel.Event{reel.Entry(now, 4096, 1), reel.Exit(now+3_000_000, 4096, 1)}))
			now += 10_000_000
		}
		realtest.Must(t, w.Flush())
	}
	grow()
	server, url := serve(t, viewer.Options{Paths: []string{path}, Recording: true})
	p := show(t, url)
	shown := func(least uint64) {
		t.Helper()
		p.until(fmt.Sprintf(`Number(document.querySelector("canvas.lanes").dataset.to) >= %d && document.querySelector("canvas.lanes").dataset.state === "still"`, least))
	}
	shown(980_000_000)
	for range 3 {
		grow()
		shown(now - 20_000_000)
		if bars := eval[string](p, `document.querySelector("canvas.lanes").dataset.bars`); bars == "0" {
			t.Error("nothing is shown of what is new")
		}
	}
	if top := p.text(".file"); !strings.Contains(top, "recording") {
		t.Errorf("the bar above doesn't say that it is in progress: %q", top)
	}
	if !eval[bool](p, `document.querySelector(".pausing").hidden`) {
		t.Error("there are buttons though nobody can pause it")
	}

	// Going elsewhere ends it, End begins it again.
	p.press("w")
	p.press("aaa")
	p.until(`document.querySelector(".follow").getAttribute("aria-pressed") === "false"`)
	p.still()
	was := p.visible()
	grow()
	p.until(fmt.Sprintf(`window.callreel.reels[0].info.duration_ns >= %d`, now-20_000_000))
	p.still()
	if w := p.visible(); w != was {
		t.Errorf("it went from %v to %v by itself", was, w)
	}
	p.do(chromedp.Click(chromedp.CSS(".follow")))
	shown(now - 20_000_000)

	grow() // which nobody is told of before the end
	realtest.Must(t, w.Close())
	server.Ended()
	p.until(`!document.querySelector(".file").innerText.includes("recording") && document.querySelector(".follow").hidden`)
	p.until(`document.querySelector(".notices").innerText.includes("has ended")`)
	calls := fmt.Sprint((now - 1000) / 10_000_000)
	if notice, file := strings.ReplaceAll(p.text(".notices"), ",", ""), strings.ReplaceAll(p.text(".file"), ",", ""); !strings.Contains(notice, calls+" calls") || !strings.Contains(file, calls+" calls") {
		t.Errorf("of %s calls the notice says %q, the bar above %q", calls, notice, file)
	}
	shown(now - 10_000_000)
	if strings.Contains(eval[string](p, `location.hash`), "follow") {
		t.Error("the URL says that the end is followed")
	}
}

// The page is told by the reel alone that another process has gone on with it.
func TestReelThatSomebodyWritesIsLiveOnceItGrows(t *testing.T) {
	realtest.Need(t, realtest.Chromium)
	path := filepath.Join(t.TempDir(), "elsewhere.reel")
	w := begin(t, path, []string{"tick"})
	th := thread(t, w, 8, "ticker", reel.Entry(1000, 4096, 1), reel.Exit(1_000_000, 4096, 1))
	realtest.Must(t, w.Flush())
	p := open(t, path)
	p.until(`document.querySelector(".file").innerText.includes("not closed")`)
	realtest.Must(t, th.Append([]reel.Event{reel.Entry(5_000_000, 4096, 1), reel.Exit(9_000_000, 4096, 1)}))
	realtest.Must(t, w.Flush())
	p.until(`document.querySelector(".file").innerText.includes("recording") && !document.querySelector(".follow").hidden`)
	realtest.Must(t, w.Close())
	p.until(`document.querySelector(".notices").innerText.includes("has ended") && document.querySelector(".follow").hidden`)
}

func TestTwoReelsAreCompared(t *testing.T) {
	functions := []string{"same", "slower", "gone", "new"}
	write := func(name string, slow uint64, other uint32) string {
		return made(t, name, functions, func(w *reel.Writer) {
			at := uint64(1000)
			var events []reel.Event
			for range 50 {
				for _, c := range []struct {
					id   uint32
					took uint64
				}{{1, 100_000}, {2, slow}, {other, 50_000}} {
					events = append(events, reel.Entry(at, 4096, c.id), reel.Exit(at+c.took, 4096, c.id))
					at += c.took + 10_000
				}
			}
			thread(t, w, 8, "main", events...)
		})
	}
	p := open(t, write("before.reel", 200_000, 3), write("after.reel", 900_000, 4))
	p.press("5")
	p.until(`document.querySelectorAll(".tab-compare .table-row").length === 4`)
	rows := eval[[]string](p, `[...document.querySelectorAll(".tab-compare .table-row")].map(r => r.innerText)`)
	if !strings.Contains(rows[0], "slower") || !strings.Contains(rows[0], "+35 ms") {
		t.Errorf("what became slower most is %q", rows[0])
	}
	if all := strings.Join(rows, "\n"); !strings.Contains(all, "gone") || !strings.Contains(all, "new") {
		t.Errorf("what is in one only: %q", all)
	}
	p.still()
	p.do(chromedp.Click(chromedp.CSS(".tab-compare .table-row")))
	p.until(`window.callreel.compare.timelines.every(t => t.selected)`)
	p.still()
	took := eval[[]float64](p, `window.callreel.compare.timelines.map(t => t.selected.end - t.selected.start)`)
	if took[0] != 200_000 || took[1] != 900_000 {
		t.Errorf("the longest calls took %v", took)
	}
	p.picture("TestTwoReels-compare")

	// What is looked at stands in the URL.
	p.do(chromedp.Navigate("about:blank"))
	p.do(chromedp.Navigate(p.url + "#tab=compare&ta=1000000-2000000&tb=3000000-4000000&fn=slower&in=" + "made"))
	p.ready()
	p.until(`window.callreel.compare.timelines.every(t => t.selected)`)
	p.still()
	if got := eval[string](p, `window.callreel.compare.timelines.map(t => t.target.from + "-" + t.target.to).join()`); got != "1000000-2000000,3000000-4000000" {
		t.Errorf("of the URL the visible ranges are %s", got)
	}
	eval[bool](p, `(window.callreel.compare.timelines[1].panBy(0.5, false), true)`)
	p.until(`location.hash.includes("tb=3500000-4500000") && location.hash.includes("ta=1000000-2000000")`)
	p.press("1")
	p.do(chromedp.Click(chromedp.CSS(".file .segments button:nth-child(2)")))
	p.until(`location.hash.includes("reel=1")`)
	p.still()
	if all := p.visible(); all.To < 50*900_000 {
		t.Errorf("the second reel is shown to %v", all.To)
	}
}
