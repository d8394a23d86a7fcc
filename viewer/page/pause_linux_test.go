package page_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\S+`)

// The page of callreel record --view pauses the recording by its buttons, or by a key, and says so; the pause is a gap.
func TestRecordingIsPausedFromItsPage(t *testing.T) {
	realtest.Need(t, realtest.Chromium, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "states"))
	path := filepath.Join(t.TempDir(), "live.reel")
	pid := strconv.Itoa(target.Pid())
	r := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "record", "-p", pid, "-f", "does_*", "--view", "--no-open", "-o", path))
	for begun := time.Now(); !pageAddress.MatchString(r.Stderr()); time.Sleep(10 * time.Millisecond) {
		if !r.Alive() || time.Since(begun) > patience {
			t.Fatalf("no page: %s", r.Stderr())
		}
	}
	p := show(t, pageAddress.FindString(r.Stderr()))
	recording := `document.querySelector(".file .badge.live") !== null`
	since := `(document.querySelector(".file .badge.paused")?.innerText ?? "").startsWith("paused since ")`
	button := func(name string) string { return `document.querySelector(".pausing .` + name + `")` }
	p.until(recording + ` && !` + button("pause") + `.disabled && ` + button("resume") + `.disabled`)

	p.do(chromedp.Click(chromedp.CSS(".pausing .pause")))
	p.until(since + ` && ` + button("pause") + `.disabled && !` + button("resume") + `.disabled`)
	p.picture("TestRecordingIsPaused-paused")
	if events := pausesOf(t, path); len(events) != 1 || events[0].To != 0 || events[0].By != "page" {
		t.Errorf("the reel has the pauses %+v", events)
	}
	p.press("p")
	p.until(recording + ` && !` + button("pause") + `.disabled`)
	p.until(`(m => m && m.pauses.length === 1 && !m.pauses[0].open)(window.callreel.reels[0].marks)`)
	p.press("0")
	p.until(`document.querySelector("canvas.lanes").dataset.paused === "1"`)

	// Whoever else asks for it: the page says so.
	realtest.MustCallreel(t, "pause", "-p", pid)
	p.until(since)
	p.press("p")
	p.until(recording)
	p.press("p")
	p.until(since)
	realtest.MustCallreel(t, "resume", "-p", pid)
	p.until(recording)
	p.until(`(m => m && m.pauses.length === 3 && m.pauses.every(x => !x.open))(window.callreel.reels[0].marks)`)
	if list := pausesOf(t, path); len(list) != 3 || list[1].By != "command" || list[2].By != "page" || list[2].To == 0 {
		t.Errorf("the reel has the pauses %+v", list)
	}

	target.Finish()
	p.until(`document.querySelector(".pausing").hidden && document.querySelector(".notices").innerText.includes("has ended")`)
	p.press("p") // of nothing
}

func pausesOf(t *testing.T, path string) []reel.Pause {
	t.Helper()
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	return f.Pauses()
}

// Where nobody can pause the recording there are no buttons.
func TestWithoutControlThereAreNoButtons(t *testing.T) {
	p := open(t, markReel(t))
	if !eval[bool](p, `document.querySelector(".pausing").hidden`) {
		t.Error("a finished recording has buttons that pause it")
	}
	p.press("p")
	if text := p.text(".notices"); strings.TrimSpace(text) != "" {
		t.Errorf("the key says %q", text)
	}
}
