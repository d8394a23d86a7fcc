package viewer

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/internal/realtest"
)

// Calls of a large reel are shown before the states of its threads are summed up, and the page is told when they are.
func TestTheFirstViewDoesNotWaitForStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.reel")
	realtest.Must(t, bigreel.Write(path, bigreel.Shape{Events: 400_000, Threads: 4, Depth: 20, Switches: 2_000_000}))
	c := serveReels(t, path)
	summing := func() bool {
		return ask[infoAnswer](c, "info").Reels[0].Scheduling.Summing
	}
	view := func() (h http.Header, states int) {
		response, body := c.do("/"+c.token+"/api/view?from=0&to=1000000000000&width=800&lanes=0:0:5,1:0:5,2:0:5,3:0:5&states=1", nil)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", response.StatusCode, body)
		}
		for _, b := range decodeView(t, body) {
			if b.states > 0 {
				states++
			}
		}
		return response.Header, states
	}
	// What is summed up waits for the first view, so that has calls only.
	h, states := view()
	if first := h.Get("Callreel-States"); (first == "") != (states == 4) {
		t.Errorf("states of %d lanes, header %q", states, first)
	}
	for deadline := time.Now().Add(time.Minute); summing(); {
		if time.Now().After(deadline) {
			t.Fatal("states are not summed up after a minute")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if h, states := view(); h.Get("Callreel-States") != "" || states != 4 {
		t.Errorf("once they are summed up: states of %d lanes, header %q", states, h.Get("Callreel-States"))
	}
}
