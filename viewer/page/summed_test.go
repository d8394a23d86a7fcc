package page_test

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/internal/realtest"
)

// Calls are shown first. States come in once they are summed up, by themselves, and the page says nothing more of it then.
func TestStatesOfALargeReelComeIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.reel")
	realtest.Must(t, bigreel.Write(path, bigreel.Shape{Events: 200_000, Threads: 4, Depth: 12, Switches: 2_000_000}))
	p := open(t, path)
	p.until(`Number(document.querySelector("canvas.lanes").dataset.bars) > 0`)
	p.until(`(() => { const d = document.querySelector("canvas.lanes").dataset; return d.unsummed === "no" && d.state === "still" && Number(d.states) > 1000 })()`)
	p.until(`document.querySelector(".badge.later") === null`)
}
