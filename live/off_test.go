package live

import (
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

func TestWhatIsOffIsInSnapshots(t *testing.T) {
	m, at, push := begun(t, time.Second)
	w := NewRecent(m, 1)
	off := func(function uint32, to uint64, perSecond float64) recorder.FunctionOff {
		return recorder.FunctionOff{Off: reel.Off{Function: function, From: at + 2e8, To: to}, PerSecond: perSecond}
	}
	push(reel.Entry(at+100, sp, 1), reel.Exit(at+200, sp, 1))
	realtest.Must(t, m.FunctionsOff([]recorder.FunctionOff{off(1, 0, 10), off(2, 0, 500), off(99, 0, 0)}))
	realtest.Must(t, m.Round(at+1e9))
	w.Add(<-m.Stretches())
	s := w.Snapshot(false)
	if s.Budget != nil || len(s.Off) != 3 || s.Off[0] != (OffFunction{ID: 2, Name: "work", Short: "work", PerSecond: 500, For: 8e8}) || s.Off[1].Name != "foo::bar()" || s.Off[1].Module != "prog" {
		t.Errorf("%+v, %+v", s.Budget, s.Off)
	}
	if len(s.Functions) != 1 || !s.Functions[0].Off {
		t.Errorf("%+v", s.Functions)
	}
	realtest.Must(t, m.FunctionsOff([]recorder.FunctionOff{off(1, at+3e8, 0), off(2, at+3e8, 0)}))
	realtest.Must(t, m.Budget(reel.Budget{Wanted: 0.02, Measured: 0.01}))
	if s = w.Snapshot(true); s.Budget == nil || s.Budget.Measured != 0.01 || len(s.Off) != 1 || s.Functions[0].Off {
		t.Errorf("when two are on again: %+v, %+v", s.Budget, s.Off)
	}
}
