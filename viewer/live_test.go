package viewer

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// A recorder starts the page beside its work: a short recording is over before that has opened the reel.
func TestRecordingThatIsOverBeforeItIsOpenedIsNotLive(t *testing.T) {
	c := serve(t, Options{Paths: []string{oneCall(t)}, Recording: true})
	c.Ended()
	if info := until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 }).Reels[0]; info.Live || !info.Closed || info.Calls != 1 {
		t.Errorf("%+v", info)
	}
}

// A page asks how things are, and then listens: what comes between must not be lost.
func TestPageThatListensLateIsToldWhatItHasMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grows.reel")
	w := newReel(t, path, []string{"work"})
	tw := thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(2500, 0x10000, 1))
	realtest.Must(t, w.Flush())
	c := serve(t, Options{Paths: []string{path, oneCall(t)}, Recording: true})
	if info := until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 }); !info.Reels[0].Live || info.Reels[1].Live {
		t.Fatalf("%+v", info)
	}
	realtest.Must(t, tw.Append([]reel.Event{reel.Entry(8000, 0x10000, 1), reel.Exit(9000, 0x10000, 1)}))
	realtest.Must(t, w.Close())
	c.Ended()
	until(c, "info", func(i infoAnswer) bool { return !i.Reels[0].Live })
	events := c.events(t)
	for _, kind := range []string{"hello", "grown", "closed"} {
		events.wait(kind)
	}
}

func TestLooksCostWhatTheyUseAtMost(t *testing.T) {
	for _, k := range []struct {
		took, used time.Duration
		processors int
		want       time.Duration
	}{
		{time.Second, 2 * time.Second, 2, 2 * time.Second},
		{time.Second, 300 * time.Millisecond, 2, 300 * time.Millisecond}, // the machine was at work for others
		{time.Second, time.Hour, 4, 4 * time.Second},
		{time.Second, 0, 8, 8 * time.Second}, // what it used isn't known
	} {
		if got := costOf(k.took, k.used, k.processors); got != k.want {
			t.Errorf("%+v: %v", k, got)
		}
	}
	look := beginLook()
	for cost := time.Duration(0); cost == 0; cost = look.cost() {
		runtime.Gosched()
	}
}
