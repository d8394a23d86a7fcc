// Package page_test drives the page of callreel view in a browser.
//
// Pictures of what it sees are kept in the folder that CALLREEL_PICTURES names, by default in pictures beside this file.
package page_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// patience is how long a state is waited for; on a machine at work everything takes longer.
const patience = 2 * time.Minute

// browser is one for all tests, started by the first that needs it.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, err := realtest.Chromium.Find()
	if err != nil {
		return nil, err
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-component-update", true),
		// Nothing but this machine can be reached: the page has to do with that.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	})
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if _, err := realtest.Chromium.Find(); err == nil {
		if ctx, err := browser(); err == nil {
			err = chromedp.Cancel(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				fmt.Fprintln(os.Stderr, "ending the browser:", err)
			}
		}
	}
	os.Exit(code)
}

// A tab is a page of callreel view.
type tab struct {
	testing.TB
	ctx context.Context
	url string

	mu   sync.Mutex
	said []string // on the console, by the page or the browser
}

// serve serves reels until the test ends.
func serve(t testing.TB, opt viewer.Options) (*viewer.Server, string) {
	t.Helper()
	s, err := viewer.New(opt)
	realtest.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, s.URL()
}

// open shows reels in a tab of its own, and waits until they are.
func open(t testing.TB, paths ...string) *tab {
	t.Helper()
	realtest.Need(t, realtest.Chromium)
	_, url := serve(t, viewer.Options{Paths: paths})
	return show(t, url)
}

// The size of the screen: a laptop's.
const (
	screenWidth  = 1366
	screenHeight = 768
)

func show(t testing.TB, url string) *tab {
	t.Helper()
	root, err := browser()
	realtest.Must(t, err)
	ctx, cancel := chromedp.NewContext(root)
	p := &tab{TB: t, ctx: ctx, url: url}
	t.Cleanup(func() {
		p.picture(strings.ReplaceAll(t.Name(), "/", "-"))
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.said) > 0 {
			t.Errorf("on the console: %q", p.said)
		}
	})
	realtest.Must(t, chromedp.Do(ctx)) // the tab is there, and listens
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.said = append(p.said, m.String())
			p.mu.Unlock()
		}
	}()
	p.media("light")
	p.do(chromedp.EmulateViewport(screenWidth, screenHeight), chromedp.Navigate(url))
	p.ready()
	return p
}

// ready waits until the page has loaded, and drawn what it is to show.
func (p *tab) ready() {
	p.Helper()
	p.until(`document.documentElement.dataset.ready === "yes"`)
	p.still()
}

// still waits until nothing moves and no answer is awaited.
func (p *tab) still() {
	p.Helper()
	p.until(`[...document.querySelectorAll("canvas.lanes")].filter(c => c.offsetParent).every(c => c.dataset.state === "still")`)
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	realtest.Must(p, chromedp.Do(p.ctx, actions...))
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		p.Fatalf("waiting for %s: %v; the page shows:\n%.1500s", expression, err, eval[string](p, "document.body.innerText"))
	}
}

// eval returns what an expression, or its promise, comes to.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// press types keys with modifiers.
func (p *tab) press(keys string, modifiers ...chromedp.Modifier) {
	p.Helper()
	p.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// media makes the system prefer light or dark.
func (p *tab) media(theme string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme},
	}})
	realtest.Must(p, err)
}

// visible is what the timeline shows, in nanoseconds.
type visible struct{ From, To float64 }

func (w visible) length() float64 { return w.To - w.From }

func (p *tab) visible() visible {
	p.Helper()
	return eval[visible](p, `(() => { const d = window.callreel.timeline().canvas.dataset; return { From: Number(d.from), To: Number(d.to) } })()`)
}

// rect is where an element is on the screen.
type rect struct{ Left, Top, Width, Height float64 }

func (p *tab) rect(selector string) rect {
	p.Helper()
	return eval[rect](p, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return { Left: r.left, Top: r.top, Width: r.width, Height: r.height } })()`, selector))
}

// text is an element's, as it can be seen.
func (p *tab) text(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// picture keeps what the tab shows.
func (p *tab) picture(name string) {
	p.Helper()
	b, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Logf("no picture: %v", err)
		return
	}
	folder := os.Getenv("CALLREEL_PICTURES")
	if folder == "" {
		folder = "pictures"
	}
	realtest.Must(p, os.MkdirAll(folder, 0o755))
	realtest.Must(p, os.WriteFile(filepath.Join(folder, name+".png"), b, 0o644))
}

// made writes a reel of functions, whose IDs are from 1, with a clock of nanoseconds.
func made(t testing.TB, name string, functions []string, fill func(w *reel.Writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	w := begin(t, path, functions)
	fill(w)
	realtest.Must(t, w.Close())
	return path
}

func begin(t testing.TB, path string, functions []string) *reel.Writer {
	t.Helper()
	return madereel.Create(t, path, reel.Header{StartUnixNS: 1, PID: 7, Clock: madereel.Nanoseconds(1)}, reel.Image{Path: "/usr/bin/made"}, functions...)
}

func thread(t testing.TB, w *reel.Writer, tid int, name string, events ...reel.Event) *reel.ThreadWriter {
	t.Helper()
	return madereel.Thread(t, w, reel.Thread{TID: tid, Process: 7, Name: name}, events...)
}
