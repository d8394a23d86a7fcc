package reel

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A thread ends when it was last seen, or with its last event: not when somebody noticed.
func TestACallThatIsOpenAtItsThreadsEndEndsThere(t *testing.T) {
	for _, test := range []struct {
		name      string
		seen, end uint64
	}{
		{"seen before its last event", 1100, 1250},
		{"seen after it", 1400, 1400},
		{"never seen", 0, 1250},
	} {
		for _, flushed := range []bool{false, true} {
			h := testHeader
			h.Clock.BaseTick = 1000
			w, name := create(t, h)
			_, err := w.AddFunctions([]Function{{Name: "start_thread"}, {Name: "leaf"}})
			realtest.Must(t, err)
			tw := addThread(t, w, Thread{TID: 7})
			realtest.Must(t, tw.Append([]Event{Entry(1050, base, 1), Entry(1200, base-32, 2), Exit(1250, base-32, 2)}))
			if flushed {
				realtest.Must(t, w.Flush())
			}
			realtest.Must(t, tw.End(test.seen))
			realtest.Must(t, w.ClockPair(9000, h.Clock.BaseUnixNS+8000))
			realtest.Must(t, w.Close())
			f := open(t, name)
			if th := f.Threads()[0]; th.EndTick != test.end {
				t.Errorf("%s: the thread ended at %d, want %d", test.name, th.EndTick, test.end)
			}
			s := Summarize(f, SummaryOptions{})
			if got := s.Functions[1]; got.Name != "start_thread" || got.Unfinished != 1 || got.Self != test.end-1050-50 || got.UnfinishedSelf != got.Self || got.EndedSelf() != 0 {
				t.Errorf("%s: %+v, want %d of its own", test.name, got, test.end-1050-50)
			}
		}
	}
}
