package viewer

import (
	"context"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// triggerJSON is a trigger as api/dump has it.
type triggerJSON struct {
	Trigger
	// EndNS is where its mark ends; where it begins is StartNS.
	EndNS uint64 `json:"end_ns"`
	// Lane is where it happened, nil if that isn't known; Row is that of its call, nil if the reel doesn't hold it.
	Lane *uint32 `json:"lane"`
	Row  *int    `json:"row"`
}

type missingJSON struct {
	Lane *uint32 `json:"lane"` // nil: all
	Missing
}

// maxTriggers is how many triggers a page marks.
const maxTriggers = 256

// dump is api/dump: what the reel is a dump of, and where on the timeline that is; null if it is none.
func (r *recording) dump(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	d, ok := DumpOf(tl.File())
	if !ok {
		return writeJSON(w, nil)
	}
	answer := struct {
		FromNS   uint64        `json:"from_ns"`
		ToNS     uint64        `json:"to_ns"`
		Triggers []triggerJSON `json:"triggers"`
		More     int           `json:"more_triggers,omitempty"`
		Missing  []missingJSON `json:"missing"`
	}{FromNS: tl.NS(d.dump.From), ToNS: tl.NS(d.dump.To), Triggers: []triggerJSON{}, Missing: []missingJSON{}}
	lanes := lanesByThread(tl)
	if tl.File().Header().Clock.Mode == reel.ClockNone { // ticks are no places on the timeline, whose unit is an event
		answer.FromNS, answer.ToNS = 0, tl.Duration()
		d.dump.Triggers, d.dump.Missing = slices.Clone(d.dump.Triggers), slices.Clone(d.dump.Missing)
		for i := range d.dump.Triggers {
			d.dump.Triggers[i].Start, d.dump.Triggers[i].End = 0, 0
		}
		for i := range d.dump.Missing {
			d.dump.Missing[i].From, d.dump.Missing[i].To = 0, 0
		}
	}
	for i := range min(d.Triggers(), maxTriggers) {
		j, err := d.onTimeline(q.ctx, tl, lanes, i)
		if err != nil {
			return err
		}
		answer.Triggers = append(answer.Triggers, j)
	}
	answer.More = d.Triggers() - len(answer.Triggers)
	for i := range min(d.Missing(), maxListed) {
		m := &d.dump.Missing[i]
		answer.Missing = append(answer.Missing, missingJSON{lanes[m.Thread], d.MissingAt(i)})
	}
	return writeJSON(w, answer)
}

// lanesByThread are the lanes of threads by their keys; of one that runs goroutines that of its own stack.
func lanesByThread(tl *timeline.Timeline) map[uint32]*uint32 {
	lanes := map[uint32]*uint32{}
	for _, l := range tl.Lanes() {
		if l.Goroutine == 0 {
			lanes[l.Thread] = &l.ID
		}
	}
	return lanes
}

// onTimeline finds where a trigger is.
func (d *Dump) onTimeline(ctx context.Context, tl *timeline.Timeline, lanes map[uint32]*uint32, i int) (triggerJSON, error) {
	t := &d.dump.Triggers[i]
	j := triggerJSON{Trigger: d.Trigger(i), Lane: lanes[t.Thread]}
	end := t.End
	if t.Open() {
		end = d.dump.To
	}
	j.StartNS, j.EndNS = tl.NS(t.Start), tl.NS(max(t.Start, end))
	if t.Start == 0 && t.End == 0 && t.Function == 0 && tl.File().Header().Clock.Mode != reel.ClockNone {
		j.StartNS, j.EndNS = tl.NS(d.dump.To), tl.NS(d.dump.To) // it was made then
	}
	if t.Function == 0 || t.Start == 0 {
		return j, nil
	}
	var within []uint32 // of a goroutine any lane may be the one
	if !tl.File().Header().Goroutines {
		if j.Lane == nil {
			return j, nil
		}
		within = []uint32{*j.Lane}
	}
	// Of the calls that are open when it began, if only since then, the one with its stack pointer. The recorder may have read the clock a
	// little behind the entry. Once it is found there is no need to see it end.
	search, found := context.WithCancel(ctx)
	defer found()
	var began uint64
	err := tl.Visit(search, within, j.StartNS, j.StartNS+1, timeline.Visitor{
		Enter: func(lane uint32, c *reel.Call) {
			if c.Func == t.Function && c.Start <= t.Start && (t.SP == 0 || c.SP == t.SP) {
				row := tl.Row(lane, c.Stack, c.Depth)
				j.Lane, j.Row, began = &lane, &row, tl.NS(c.Start)
				if t.SP != 0 {
					found()
				}
			}
		},
		Leave: func(uint32, *reel.Call) bool { return j.Row == nil },
	})
	if j.Row == nil {
		return j, err
	}
	c, ok, err := tl.CallAt(ctx, *j.Lane, *j.Row, began)
	if ok {
		j.StartNS, j.EndNS = c.Start, c.Start+c.Duration
	}
	return j, err
}
