package page_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// Where the screen has finer pixels than CSS and frames take long, bars are coarse while something moves, and as fine as
// ever behind that.
func TestBarsAreSharpWhenNothingMoves(t *testing.T) {
	p := open(t, real(t))
	p.do(chromedp.EmulateViewport(screenWidth, screenHeight, chromedp.EmulateScale(2)))
	p.do(chromedp.Reload())
	p.ready()
	if got := eval[bool](p, `(() => {
		const t = callreel.timeline(), c = t.canvas
		window.coarse = []
		const paint = t.painter.paint.bind(t.painter)
		t.painter.paint = (s) => { coarse.push(s.coarse); paint(s) }
		t.cost = 1000 // as on a slow machine
		return c.width > 1.9 * c.clientWidth
	})()`); !got {
		t.Fatal("the screen's pixels are not finer")
	}
	p.press("w")
	p.until(`coarse.includes(true)`)
	p.still()
	list := eval[[]bool](p, `coarse`)
	if list[len(list)-1] {
		t.Errorf("frames were coarse: %v", list)
	}
	if same := eval[bool](p, `(() => {
		const t = callreel.timeline(), data = () => t.canvas.toDataURL()
		const shown = data()
		t.cost = 0
		t.draw()
		return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(data() === shown))))
	})()`); !same {
		t.Error("at rest the picture differs from one that was never coarse")
	}
}
