package viewer

import (
	"path/filepath"
	"testing"
	"time"

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
	must(t, w.Flush())
	c := serve(t, Options{Paths: []string{path, oneCall(t)}, Recording: true})
	if info := until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 }); !info.Reels[0].Live || info.Reels[1].Live {
		t.Fatalf("%+v", info)
	}
	must(t, tw.Append([]reel.Event{reel.Entry(8000, 0x10000, 1), reel.Exit(9000, 0x10000, 1)}))
	must(t, w.Close())
	c.Ended()
	until(c, "info", func(i infoAnswer) bool { return !i.Reels[0].Live })
	events := c.events(t)
	for _, kind := range []string{"hello", "grown", "closed"} {
		events.wait(kind)
	}
}

func TestFollowingTakesAFifthOfAProcessorAtMost(t *testing.T) {
	for _, processors := range []int{1, 2, 8, 256} {
		for _, took := range []time.Duration{time.Microsecond, time.Second, time.Hour} {
			used, all := took*time.Duration(processors), took+restAfter(took, processors)
			if used*5 > all {
				t.Errorf("%d processors are at work for %v of %v", processors, took, all)
			}
		}
	}
}
