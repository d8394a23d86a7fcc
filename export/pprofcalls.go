package export

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/callreel/callreel/reel"
)

// PProfCalls writes the reel as a gzipped profile.proto, for go tool pprof: how
// often each stack was called (calls), and how long it was at its innermost frame
// itself (wall, nanoseconds); of reels with states of threads also how long of that
// it was running (cpu), ready and blocked, if that is known. Locations are functions' entries, mappings are
// images with their build IDs. Threads of different names are told apart by the
// label "thread", processes by "pid".
//
// Calls that were open at the end, or ended without returning, count with the time
// until then. What was dropped or damaged, and what share is recorded where functions were off, is told in comments. Memory is bounded:
// where there are more than about a million different stacks, some stand in the
// profile twice, and readers sum them up; of stacks deeper than 1024 frames the
// rest between those and the innermost is one frame, "[deeper calls]".
func PProfCalls(ctx context.Context, f *reel.File, w io.Writer, opt Options) error {
	t := newCallTree(ctx, f, opt)
	if t.weighed() {
		t.split()
	}
	return t.pprof(w)
}

func (t *callTree) pprof(w io.Writer) error {
	t.byThread = true
	z := gzip.NewWriter(w)
	p := &pprofCalls{
		pprofEncoder: pprofEncoder{w: z, strings: map[string]uint64{"": 0}, list: []string{""}, functions: map[StackCall]uint64{}},
		tree:         t, places: make(map[uint32]uint64), mappings: make(map[reel.ImageID]uint64),
	}
	p.calls()
	t.write = func(*callTree) { p.samples() }
	err := t.count("pprof")
	if err == nil {
		p.comments()
		for _, text := range p.list {
			p.out.text(profileStringTable, text)
			p.flush()
		}
		err = p.pprofEncoder.err
	}
	if err == nil {
		err = z.Close()
	}
	return err
}

// pprofCalls writes the calls of a reel.
type pprofCalls struct {
	pprofEncoder
	tree     *callTree
	places   map[uint32]uint64 // location by function ID
	mappings map[reel.ImageID]uint64
}

// Fields beyond those of samples.
const (
	profileDefaultType = 14
	labelNumber        = 3
)

// calls writes what there is to be said before the samples.
func (p *pprofCalls) calls() {
	p.valueType(profileSampleType, "calls", "count")
	p.valueType(profileSampleType, "wall", "nanoseconds")
	if p.tree.parts != nil {
		for _, what := range [...]string{"cpu", "ready", "blocked"} {
			p.valueType(profileSampleType, what, "nanoseconds")
		}
	}
	p.valueType(profilePeriodType, "wall", "nanoseconds")
	p.out.number(profilePeriod, 1)
	f := p.tree.f
	what := "wall"
	if p.tree.untimed {
		what = "calls"
	}
	p.out.number(profileDefaultType, p.string(what))
	p.out.number(profileTimeNanos, uint64(max(p.tree.base, 0)))
	p.out.number(profileDurationNanos, nanoseconds(time.Duration(f.Clock().UnixNS(f.LastTick())-p.tree.base)))
	for k, m := range f.Images() {
		if m.Path == f.Header().Exe { // the first mapping is taken for the program
			p.mapping(reel.ImageID(k + 1))
			break
		}
	}
	p.flush()
}

// comments writes what is missing, which is known only at the end.
func (p *pprofCalls) comments() {
	f := p.tree.f
	say := func(format string, args ...any) { p.out.number(profileComment, p.string(fmt.Sprintf(format, args...))) }
	say("%s: %s", f.Header().Tool, cut(strings.Join(f.Header().Command, " "), maxName))
	dumpComments(f, func(id uint32) string {
		name, _ := p.tree.frameName(id)
		return name
	}, say)
	if text := Unrecorded(f); text != "" {
		say("%s", text)
	}
	dropped := uint64(0)
	for _, d := range f.Drops() {
		dropped += d.Entries
	}
	if dropped > 0 {
		say("%d calls dropped while recording: they are missing", dropped)
	}
	for _, d := range f.Damage() {
		say("damaged: %s", d)
	}
	p.flush()
}

// mapping returns the identity of an image's mapping, 0 for none.
func (p *pprofCalls) mapping(id reel.ImageID) uint64 {
	m, known := p.tree.f.Image(id)
	if !known {
		return 0
	}
	n := p.mappings[id]
	if n != 0 {
		return n
	}
	n = uint64(len(p.mappings)) + 1
	p.mappings[id] = n
	b := p.message[:0]
	b.number(mappingID, n)
	b.number(mappingStart, m.Base)
	b.number(mappingLimit, m.End)
	b.number(mappingFilename, p.string(cut(m.Path, maxName)))
	b.number(mappingBuildID, p.string(cut(m.ID, maxName)))
	b.number(mappingHasFunctions, 1) // or pprof would look for them itself
	p.message = b
	p.out.bytes(profileMapping, b)
	p.flush()
	return n
}

// place returns the identity of a function's location.
func (p *pprofCalls) place(id uint32) uint64 {
	n := p.places[id]
	if n != 0 {
		return n
	}
	n = uint64(len(p.places)) + 1
	p.places[id] = n
	name, _ := p.tree.frameName(id)
	fn, _ := p.tree.f.Function(id)
	m, _ := p.tree.f.Image(fn.Image)
	mapping := p.mapping(fn.Image)
	file, line := p.tree.line(id)
	function := p.function(StackCall{Function: name, Linkage: cut(fn.Name, maxName), File: file})
	b := p.message[:0]
	b.number(locationID, n)
	b.number(locationMapping, mapping)
	b.number(locationAddress, fn.Addr+m.Slide)
	p.inner = p.inner[:0]
	p.inner.number(lineFunction, function)
	p.inner.number(lineLine, uint64(line))
	b.bytes(locationLine, p.inner)
	p.message = b
	p.out.bytes(profileLocation, b)
	p.flush()
	return n
}

// samples writes a Sample for each stack, innermost frame first.
func (p *pprofCalls) samples() {
	t := p.tree
	for k := range t.nodes {
		if !t.counted(k) {
			continue
		}
		p.ids = p.ids[:0]
		at := uint32(k)
		for ; t.nodes[at].parent != noParent; at = t.nodes[at].parent {
			p.ids.varint(p.place(t.nodes[at].fn))
		}
		p.stack(k, t.roots[t.nodes[at].fn])
		if k%1024 == 0 && t.failed() {
			return
		}
	}
	t.err = p.pprofEncoder.err
}

// stack writes a Sample of a node, whose frames are in p.ids.
func (p *pprofCalls) stack(k int, root treeRoot) {
	n := &p.tree.nodes[k]
	m := p.message[:0]
	m.bytes(sampleLocationID, p.ids)
	p.inner = p.inner[:0]
	p.inner.varint(n.calls)
	p.inner.varint(p.tree.f.Clock().Nanoseconds(n.self))
	if p.tree.parts != nil {
		part := p.tree.part(k)
		for _, ns := range [...]uint64{part.Running, part.Ready, part.Blocked} {
			p.inner.varint(ns)
		}
	}
	m.bytes(sampleValue, p.inner)
	label := func(key string, text string, number uint64) {
		p.inner = p.inner[:0]
		p.inner.number(labelKey, p.string(key))
		p.inner.number(labelStr, p.string(text))
		p.inner.number(labelNumber, number)
		m.bytes(sampleLabel, p.inner)
	}
	if root.thread != "" {
		label("thread", root.thread, 0)
	}
	if root.pid > 0 {
		label("pid", "", uint64(root.pid))
	}
	p.message = m
	p.out.bytes(profileSample, m)
	p.flush()
}
