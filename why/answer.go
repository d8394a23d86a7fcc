package why

import (
	"context"
	"fmt"
	pathpkg "path"
	"slices"

	"github.com/callreel/callreel/reel"
)

// answer explains one call; slow are all that are explained.
func (x *explainer) answer(ctx context.Context, r *ref, slow []ref) (*Answer, error) {
	t := replay(ctx, x.f, []ref{*r}, replayed{maxNodes, true, x.sampling([]ref{*r}, wholeEvents)}, 1)[0]
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("why: %s: call %v: its events can't be read: %w", x.f.Name(), r.id(), ErrNoCall)
	}
	peers := x.peersOf(ctx, r, slow, t.faults() >= worthFaults)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := align(placed{tree: t, ref: *r}, slices.Clone(peers.mid), peers.median)
	a.addOthers(peers.spread)
	thread := x.threads[r.thread]
	out := &Answer{
		ID: r.id().String(), Function: x.name(r.fn), Module: x.module(r.fn), TID: thread.TID, Thread: thread.Name, Goroutine: r.goroutine,
		StartNS: x.since(r.start), DurationNS: x.ns(r.duration()), Unfinished: r.flags&reel.Unfinished != 0,
		Others: peers.count, Peers: len(peers.mid), PeerP50NS: x.ns(peers.median), PeerP99NS: x.ns(peers.p99), Causes: []Cause{},
	}
	out.ExcessNS = int64(out.DurationNS) - int64(out.PeerP50NS)
	x.splitInto(out, a)
	if p := nearest(peers.mid, peers.median); p != nil {
		out.Peer = p.id().String()
	}
	x.causes(ctx, out, a, peers, slow)
	if len(out.Causes) > 0 {
		out.Causes[0].DistinguishedBy = x.distinguish(a, peers, x.found.found[r.fn], slow)
	}
	out.Notes = x.doubts(a, peers)
	for _, list := range [...][]Cause{out.Causes, out.Natural} {
		for i := range list {
			list[i].Text = causeText(out, &list[i])
		}
	}
	out.slower = a.allSlower()
	if ready := out.ByState.ReadyNS; len(out.Causes) == 0 && ready > 0 && 2*ready > out.ExcessNS && out.hint == "" {
		out.hint = fmt.Sprintf("%s of it it was ready to run and had no processor", took(uint64(ready)))
	}
	return out, nil
}

// causes finds the causes that stand out.
func (x *explainer) causes(ctx context.Context, out *Answer, a *aligned, peers *peerSet, slow []ref) {
	if len(peers.mid) == 0 {
		return
	}
	scatter := peers.scatter()
	outlier := scatter.outlier(a)
	byNature := false
	if slope, heavy := scatter.heavy(); heavy {
		byNature = !scatter.step(float64(a.slow.duration()), slope, x.found.found[a.slow.fn].longest())
	}
	again := again{x: x, a: a, slow: slow}
	var natural []place // parts that are no more than what scatters
	for _, p := range a.places() {
		marks := a.marks(&p)
		if !a.unusual(&p, marks, peers, outlier) {
			natural = append(natural, p)
			continue
		}
		larger := slices.ContainsFunc(natural, func(p place) bool { return p.state != int(reel.StateReady) })
		switch c := x.cause(ctx, a, &p, marks); {
		case c.natural(), larger && !outlier && c.Kind != NewPath, byNature && c.Kind != NewPath && !c.forWork():
			// Where more of it is by nature, the rest follows: as of all that there is more to do. What has a heavy tail is how much that is; who
			// waits for another's work is slow for that.
			natural = append(natural, p)
		case c.maybeHiccup() && !again.often(ctx, c, &p, marks):
			if out.hiccup == "" {
				out.hiccup = fmt.Sprintf("%s more %s", took(uint64(c.ExcessNS)), where(out, c))
			}
		default:
			out.Causes = append(out.Causes, *c)
		}
	}
	if len(out.Causes) == 0 {
		x.natural(ctx, out, a, natural)
	}
}

// forWork says whether a cause is a wait in which the thread that was waited for worked.
func (c *Cause) forWork() bool {
	return c.State == stateName(int(reel.StateBlocked)) && c.WaitsFor != nil && c.WaitsFor.State == stateName(int(reel.StateRunning))
}

// mostNatural is how many parts of an excess are told that are no causes.
const mostNatural = 3

// natural tells what an excess that nothing is claimed for consists of, the largest part first.
func (x *explainer) natural(ctx context.Context, out *Answer, a *aligned, parts []place) {
	for _, p := range parts {
		if float64(p.excess) < worth*float64(max(1, sum(a.at[0].sub))) || len(out.Natural) == mostNatural {
			continue
		}
		out.Natural = append(out.Natural, *x.cause(ctx, a, &p, a.marks(&p)))
	}
	if c := out.hinted(); c != nil {
		out.hint = fmt.Sprintf("%s of it %s", took(uint64(c.ExcessNS)), where(out, c))
		if c.State == "blocked" || c.State == "ready" {
			out.hint += ", " + inState(c.State)
		}
	}
}

// worthFaults is how many page faults of a call are worth a look at those of its peers.
const worthFaults = 16

// faults counts the page faults of a call.
func (t *tree) faults() (n uint64) {
	for i := range t.nodes {
		n += t.nodes[i].minor + t.nodes[i].major
	}
	return n
}

// nearest is the peer whose duration is nearest to a median.
func nearest(peers []placed, median uint64) *placed {
	var best *placed
	off := func(p *placed) uint64 { return max(p.duration(), median) - min(p.duration(), median) }
	for i := range peers {
		if best == nil || off(&peers[i]) < off(best) {
			best = &peers[i]
		}
	}
	return best
}

// module is the base name of the function's image.
func (x *explainer) module(id uint32) string {
	fn, ok := x.f.Function(id)
	if !ok {
		return ""
	}
	im, ok := x.f.Image(fn.Image)
	if !ok || im.Path == "" {
		return ""
	}
	return pathpkg.Base(im.Path)
}

// splitInto splits the excess of an answer by kinds and by states, so that each adds up to it.
func (x *explainer) splitInto(out *Answer, a *aligned) {
	var kinds kindParts
	for i := range a.at {
		a.addKinds(&kinds, int32(i))
	}
	k := &out.ByKind
	parts := []*int64{&k.MoreCallsNS, &k.SlowerCallsNS, &k.NewPathNS, &k.MissingPathNS, &k.SelfNS}
	for i, v := range [...]int64{kinds.more, kinds.slower, kinds.fresh, kinds.missing, kinds.self} {
		*parts[i] = x.signed(v)
	}
	evenOut(parts, out.ExcessNS)
	s := &out.ByState
	parts = []*int64{&s.UnknownNS, &s.CPUNS, &s.ReadyNS, &s.BlockedNS}
	for i, v := range a.at[0].sub {
		*parts[i] = x.signed(v)
	}
	evenOut(parts, out.ExcessNS)
}

// evenOut adds what rounding has left to the largest part.
func evenOut(parts []*int64, whole int64) {
	most := parts[0]
	for _, p := range parts {
		whole -= *p
		if abs(*p) > abs(*most) {
			most = p
		}
	}
	*most += whole
}

func abs(v int64) int64 { return max(v, -v) }

// cause says what is in a place.
func (x *explainer) cause(ctx context.Context, a *aligned, p *place, marks []bool) *Cause {
	m := &a.at[p.named()]
	c := &Cause{Path: x.nameAll(a.path(p.named())), ExcessNS: x.signed(p.excess), State: stateName(max(p.state, 0)), Calls: m.calls, Kind: a.kindOf(p)}
	c.Share = float64(p.excess) / float64(max(1, sum(a.at[0].sub)))
	spent := a.slow.spentIn(marks)
	c.SpentNS = x.ns(spent.sum())
	var usual []uint64
	var calls []uint64
	for i := range a.peers {
		s := a.peers[i].spentIn(marks)
		usual = append(usual, s.sum())
		calls = append(calls, a.peers[i].callsOf(p.named()))
	}
	slices.Sort(usual)
	slices.Sort(calls)
	if len(usual) > 0 {
		c.PeerSpentNS, c.PeerCalls = x.ns(rank(usual, 0.5)), rank(calls, 0.5)
	}
	if m.node >= 0 {
		n := &a.slow.nodes[m.node]
		c.FromNS, c.ToNS = x.since(n.from), x.since(n.to)
	}
	switch p.state {
	case int(reel.StateBlocked):
		x.waitsFor(ctx, a, c, marks)
	case int(reel.StateReady):
		x.ranInstead(a, c, marks)
	}
	x.faults(a, c, marks)
	return c
}

// kindOf says how a place differs from what the peers do.
func (a *aligned) kindOf(p *place) Kind {
	m := &a.at[p.at]
	switch {
	case p.named() == 0:
		return Self
	case m.calls == 0:
		return MissingPath
	case a.newPath(p.named()):
		return NewPath
	}
	// How long it was ready for a processor says nothing of what it did.
	usual, excess := m.sub, m.sub
	for s := range usual {
		usual[s] = m.subUsual[s]
	}
	if p.alone {
		usual, excess = m.usual, m.excess
	}
	work := func(v [4]int64) float64 { return float64(sum(v) - v[reel.StateReady]) }
	calls := float64(m.calls) / m.peerCalls
	each := (work(usual) + work(excess)) / work(usual) / calls // how many times as long
	switch {
	case work(excess) <= 0 || work(usual) <= 0:
	case (calls-1)*work(usual) >= 0.5*work(excess), calls >= 1.5 && calls >= each:
		return MoreCalls
	}
	if p.alone && a.list[p.at].children {
		return Self
	}
	return SlowerCalls
}

// addOthers aligns a sample of all other calls, for their scatter. Where they go and neither the call nor its peers do doesn't matter.
func (a *aligned) addOthers(others []placed) {
	var all states
	for i := range others {
		s := others[i].total()
		for k := range s {
			all[k] += s[k]
		}
	}
	a.crowd = float64(all[reel.StateReady]) / float64(max(1, all[reel.StateRunning]))
	a.others = slices.Clone(others)
	for i := range a.others {
		a.place(&a.others[i])
	}
}

// place finds where a call's tree goes that the call itself or its peers go, too.
func (a *aligned) place(o *placed) {
	o.of = make([]int32, len(o.nodes))
	for k := range o.nodes {
		if up := o.nodes[k].parent; up >= 0 {
			o.of[k] = -1
			if o.of[up] >= 0 {
				if at, ok := a.edges.get(edge{o.of[up], o.nodes[k].fn}); ok {
					o.of[k] = at
				}
			}
		}
	}
}
