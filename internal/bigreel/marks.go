package bigreel

import (
	"fmt"
	"math/rand/v2"

	"github.com/callreel/callreel/reel"
)

// The markers of a reel, by their IDs. Steps lie within each other, transactions cross them.
const (
	markStep = iota + 1
	markStepEnd
	markTransaction
	markTransactionEnd
	markJob
	markJobEnd
	markSend
	markReceive
	markQueue
	markTick
)

// steps is how many titles steps have.
const steps = 200

// addMarkers adds them, steps last: one for each title.
func addMarkers(w *reel.Writer) error {
	id := []reel.Argument{{Name: "id", Kind: reel.ArgumentUint}}
	m := func(name, title string, kind reel.MarkKind, arguments []reel.Argument) reel.Marker {
		k := reel.Marker{Provider: "big", Name: name, Title: title, Pair: title, Kind: kind, Arguments: arguments, TitleArg: -1, IDArg: -1, ValueArg: -1}
		if kind.HasID() {
			k.IDArg = 0
		} else if kind == reel.MarkCounter {
			k.ValueArg = 0
		}
		return k
	}
	list := []reel.Marker{
		m("step", "step", reel.MarkBegin, nil), m("step_end", "", reel.MarkEnd, nil),
		m("transaction__start", "transaction", reel.MarkBegin, nil), m("transaction__done", "transaction", reel.MarkEnd, nil),
		m("job__start", "job", reel.MarkAsyncBegin, id), m("job__done", "job", reel.MarkAsyncEnd, id), m("send", "send", reel.MarkFlowOut, id), m("receive", "send", reel.MarkFlowIn, id),
		m("queue", "queue", reel.MarkCounter, []reel.Argument{{Name: "length", Kind: reel.ArgumentUint}}), m("tick", "tick", reel.MarkInstant, nil),
	}
	for i := range steps {
		title := fmt.Sprintf("step %d", i)
		list = append(list, m(title, title, reel.MarkBegin, nil), m(title+"_end", title, reel.MarkEnd, nil))
	}
	_, err := w.AddMarkers(list)
	return err
}

// marks writes so many of a thread until its end: steps five deep, and now and then something else.
func marks(tw *reel.ThreadWriter, rng *rand.Rand, thread, n, end uint64) error {
	mean := float64(end-start) / float64(n)
	batch := make([]reel.Mark, 0, 1<<12)
	var open []uint32
	transaction := false
	now := float64(start)
	for i := range n {
		now += mean * min(8, rng.ExpFloat64())
		m := reel.Mark{Time: min(uint64(now), end), Marker: markTick}
		with := func(marker uint32, v uint64) { m.Marker, m.Values = marker, []reel.Value{{Bits: v}} }
		id := thread<<32 | i/20
		switch x := i % 20; {
		case x == 0:
			with(markJob, id)
		case x == 13:
			with(markJobEnd, id)
		case x == 1:
			with(markSend, id)
		case x == 14:
			with(markReceive, id)
		case x == 5 || x == 15:
			with(markQueue, rng.Uint64N(1000))
		case x == 7:
		case x == 9:
			if m.Marker = markTransaction; transaction {
				m.Marker = markTransactionEnd
			}
			transaction = !transaction
		case len(open) > 0 && (len(open) >= 5 || rng.IntN(2) == 0):
			m.Marker = open[len(open)-1]
			open = open[:len(open)-1]
		default:
			m.Marker = uint32(markTick + 1 + 2*rng.IntN(steps))
			open = append(open, m.Marker+1)
		}
		if batch = append(batch, m); len(batch) == cap(batch) {
			if err := tw.Marks(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return tw.Marks(batch)
}
