package export

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/reel"
)

// pauseEdge is where a pause begins or ends.
type pauseEdge struct {
	tick  uint64
	pause int
	ends  bool
	reel.Pause
}

// edges puts the pauses in order.
func (m *markWalk) edges(pauses []reel.Pause) {
	m.paused = make([]*asyncTrack, len(pauses))
	for i, p := range pauses {
		to := p.To
		if to == 0 {
			to = m.f.LastTick()
		}
		m.pauses = append(m.pauses, pauseEdge{p.From, i, false, p}, pauseEdge{max(to, p.From), i, true, p})
	}
	slices.SortStableFunc(m.pauses, func(a, b pauseEdge) int { return cmp.Compare(a.tick, b.tick) })
}

// tellPauses tells what is before a tick, or at it.
func (m *markWalk) tellPauses(tick uint64) {
	for len(m.pauses) > 0 && m.pauses[0].tick <= tick {
		e := &m.pauses[0]
		m.said = said{title: "paused", category: "callreel", by: e.By}
		if !e.ends {
			pid := e.Process
			if pid == 0 {
				pid = m.f.Header().PID
			}
			t := m.track(trackKey{pid, m.said.category, m.said.title})
			m.paused[e.pause] = t
			m.sink.asyncBegin(t, m.at(e.tick), &m.said)
		} else {
			t := m.paused[e.pause]
			m.paused[e.pause] = nil
			m.said.by = ""
			if e.To == 0 {
				m.said.end = "unfinished"
			}
			m.sink.asyncEnd(t, m.at(e.tick), &m.said)
			m.release(t)
		}
		m.pauses = m.pauses[1:]
	}
}
