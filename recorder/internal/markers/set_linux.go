package markers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/trigger"
	"github.com/callreel/callreel/reel"
)

// Set is what is recorded of markers. Wants and decoders may be used by several goroutines, the other methods by one at a time.
type Set struct {
	specs []*spec
	pairs []sdt.Pair
	names []string // of markers that were seen
	told  int      // see few
	taken func(trigger.Mark) []stub.MarkTrigger
	parts map[uint32][]stub.MarkTrigger // in triggers, by ID
	says  map[uint32]stub.Say           // what markers say to the recording, by ID
	// saidDeaf says that this has been told.
	saidDeaf bool
	own      *spec  // of markers that say something and weren't asked for; nil if they are left alone
	deaf     string // why the program isn't obeyed, "" if it is

	mu      sync.Mutex // guards what follows, which grows as libraries are loaded
	planned []*planned // that of number n is at n-1
}

// planned is a marker that is recorded.
type planned struct {
	reel.Marker // but for its image's number
	image       *mapped.Image
	meaning     sdt.Meaning
	capture     *stub.Capture // nil without arguments in registers or memory
	// places say of each of the marker's Arguments which of the capture's values it is, or, with -1, that it is constant.
	places    []int
	constants []uint64
	semaphore uint64    // in the target, 0 for none
	constant  *constant // nil for most
}

// New reads what is asked for. An error is an *Error.
func New(o Options) (*Set, error) {
	s := &Set{}
	for _, text := range o.Markers {
		one, err := parse(text)
		if err != nil {
			return nil, &Error{"--markers", text, err}
		}
		s.specs = append(s.specs, one)
	}
	for _, text := range o.Pairs {
		p, err := sdt.ParsePair(text)
		if err != nil {
			return nil, &Error{"--pair", text, err}
		}
		s.pairs = append(s.pairs, p)
	}
	return s, nil
}

// Empty says whether nothing is asked for, as of nil.
func (s *Set) Empty() bool { return s == nil || len(s.specs) == 0 }

// Obey lets the program pause its recording, and go on, by its markers CALLREEL_PAUSE and CALLREEL_RESUME, asked for or not. If why isn't "" it
// isn't obeyed, and told so.
func (s *Set) Obey(why string) { s.own, s.deaf = &spec{text: "callreel:pause"}, why }

// ObeyGo is Obey for a Go program, whose functions for that write markers of their own: it returns their IDs, as stub.Config.GoSays.
func (s *Set) ObeyGo() (ids [2]uint32) {
	s.own = nil
	for i, kind := range []sdt.Kind{sdt.Pause, sdt.Resume} {
		p := &planned{meaning: sdt.Meaning{Kind: kind}}
		p.TitleArg, p.IDArg, p.ValueArg = -1, -1, -1
		if n, ok := s.add(p); ok {
			ids[i] = ring.MarkID(n)
		}
	}
	return ids
}

// Wants returns the notes among which markers are picked: none if none of them is wanted, and where nothing is asked for only those by which
// the program pauses its recording, so that no others are planned.
func (s *Set) Wants(notes []sdt.Note) (wanted []sdt.Note) {
	for i := range notes {
		switch s.specOf(&notes[i]) {
		case nil:
		case s.own:
			wanted = append(wanted, notes[i])
		default:
			return notes
		}
	}
	return wanted
}

// specOf is the last that asks for a marker.
func (s *Set) specOf(n *sdt.Note) *spec {
	for _, one := range slices.Backward(s.specs) {
		if one.matches(n) {
			return one
		}
	}
	if s.own != nil && say(n) != stub.SayNothing {
		return s.own
	}
	return nil
}

// say is what a marker says to the recording.
func say(n *sdt.Note) stub.Say {
	switch {
	case n.Provider != sdt.Provider:
	case n.Name == "pause":
		return stub.SayPause
	case n.Name == "resume":
		return stub.SayResume
	}
	return stub.SayNothing
}

// Says are what markers say to the recording, by their IDs. It doesn't change any more.
func (s *Set) Says() map[uint32]stub.Say { return s.says }

// Picked counts what Pick has done: sites of markers that were asked for, those that are recorded, and why the others aren't.
type Picked struct {
	Seen, Recorded int
	Refused        map[string]int // by reason
}

// Notice tells the user something; its arguments are those of fmt.Printf.
type Notice = func(format string, args ...any)

// Pick takes the markers of an image that are asked for. It must come when the image's functions have been picked, and before they are
// taken over by an arena. mayRead says that stubs may read the process's memory.
func (s *Set) Pick(ctx context.Context, im *mapped.Image, mayRead bool, notice Notice) Picked {
	n := Picked{Refused: map[string]int{}}
	if s == nil || len(im.Notes) != len(im.Marks) {
		return n
	}
	meanings := sdt.Meanings(im.Notes, s.pairs)
	var asked []*sdt.Note
	for i := range im.Notes {
		s.see(&im.Notes[i])
		if s.specOf(&im.Notes[i]) != nil {
			asked = append(asked, &im.Notes[i])
		}
	}
	if len(asked) == 0 {
		return n
	}
	hosts := map[uint64]*stub.Probe{}
	for i := range im.Traced {
		hosts[im.Traced[i].Addr] = &im.Traced[i]
	}
	places, types := newPlacer(im.Object, im.Slide, asked), newTyper(ctx, im.Object, im.DebugFiles)
	defer types.close()
	for i := range im.Notes {
		note, m := &im.Notes[i], &im.Marks[i]
		spec := s.specOf(note)
		if spec == nil {
			continue
		}
		for _, one := range s.specs {
			one.hit = one.hit || one.matches(note)
		}
		counts := spec != s.own
		if !counts && s.deaf != "" {
			if !s.saidDeaf {
				s.saidDeaf = true
				notice("the program pauses its own recording (CALLREEL_PAUSE), which isn't obeyed: %s", s.deaf)
			}
			continue
		}
		n.Seen += btoi(counts)
		host := hosts[m.Host]
		if why := refusal(im, m, host); why != plan.ReasonNone {
			switch {
			case !counts:
				s.few(notice)("the program's %s at %#x isn't obeyed: %s", note.Name, note.Addr, why)
				continue
			case spec.isExact():
				s.few(notice)("--markers %s: the one at %#x can't be recorded: %s", spec.text, note.Addr, why)
			}
			n.Refused[why.String()]++
			continue
		}
		p := s.plan(spec, note, meanings[i], places, types, mayRead, s.few(notice))
		if p.image = im; !counts {
			p.semaphore = 0
		}
		number, ok := s.addWithConstants(p, note)
		if !ok {
			n.Refused["too-many"]++
			continue
		}
		id := ring.MarkID(number)
		s.take(id, p)
		s.obey(id, note)
		if host != nil && m.With == plan.MarkJoined {
			host.Marks = append(host.Marks, stub.Joined{Addr: m.Addr, ID: id})
		} else {
			im.Marked = append(im.Marked, stub.Probe{Function: &m.Alone, Image: im.Probe, ID: id, Slide: im.Slide})
		}
		im.HasMarks = im.HasMarks || counts
		n.Recorded += btoi(counts)
	}
	im.Semaphores = s.semaphores(im)
	return n
}

// obey notes what a marker says to the recording.
func (s *Set) obey(id uint32, n *sdt.Note) {
	if say := say(n); say != stub.SayNothing && s.own != nil && s.deaf == "" {
		says := maps.Clone(s.says) // as of parts
		if says == nil {
			says = map[uint32]stub.Say{}
		}
		says[id] = say
		s.says = says
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Triggers lets markers that are picked from now on have their parts in triggers, as taken says.
func (s *Set) Triggers(taken func(trigger.Mark) []stub.MarkTrigger) { s.taken = taken }

// take notes a marker's part in triggers.
func (s *Set) take(id uint32, p *planned) {
	if s.taken == nil {
		return
	}
	list := s.taken(trigger.Mark{ID: id, Provider: p.Provider, Name: p.Name, Title: p.Title, Pair: p.Pair,
		Begin: p.Kind == reel.MarkBegin, End: p.Kind == reel.MarkEnd})
	if len(list) == 0 {
		return
	}
	parts := maps.Clone(s.parts) // stubs may be made at any time by the other
	if parts == nil {
		parts = map[uint32][]stub.MarkTrigger{}
	}
	parts[id] = list
	s.parts = parts
}

// Parts are what the markers have of triggers, by their IDs. It doesn't change any more.
func (s *Set) Parts() map[uint32][]stub.MarkTrigger { return s.parts }

// refusal says why a marker can't be recorded.
func refusal(im *mapped.Image, m *plan.Mark, host *stub.Probe) plan.Reason {
	if host != nil && m.With != plan.MarkApart {
		return m.ReasonWith()
	}
	if m.Alone.Tier == plan.TierNone {
		return m.Alone.Reason
	}
	for i := range im.Hooked {
		for _, h := range im.Hooked[i].Patched() {
			if slices.ContainsFunc(m.Alone.Sites, func(s plan.Site) bool { return h.Addr < s.End() && s.Addr < h.End() }) {
				return plan.ReasonMarkLost
			}
		}
	}
	return plan.ReasonNone
}

// isExact says whether it names one marker.
func (s *spec) isExact() bool { return !strings.ContainsAny(s.glob, "*?[") }

// see notes a name.
func (s *Set) see(n *sdt.Note) {
	const most = 1 << 14
	if name := n.Provider + ":" + n.Name; len(s.names) < most && !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
}

// few lets a handful of notices through: a glob may match very many markers.
func (s *Set) few(notice Notice) Notice {
	const most = 8
	return func(format string, args ...any) {
		switch s.told++; {
		case s.told <= most:
			notice(format, args...)
		case s.told == most+1:
			notice("there are more markers of which not all can be recorded that was asked for: callreel markers lists them")
		}
	}
}

// add numbers a marker.
func (s *Set) add(p *planned) (number uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.planned)+1 >= ring.MaxMarks {
		return 0, false
	}
	s.planned = append(s.planned, p)
	return uint32(len(s.planned)), true
}

// AddTo puts what stubs are asked for of markers into a table of captures, which isn't changed: another one is returned.
func (s *Set) AddTo(table map[uint32]*stub.Captures) map[uint32]*stub.Captures {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[uint32]*stub.Captures, len(table)+len(s.planned))
	for id, c := range table {
		all[id] = c
	}
	for i, p := range s.planned {
		if p.capture != nil {
			all[ring.MarkID(uint32(i+1))] = &stub.Captures{Entry: p.capture, Constant: p.constant.forStubs()}
		}
	}
	return all
}

// Check returns an error for the first option that is about no marker, unless wait, which may be nil, says of it that one may come.
func (s *Set) Check(wait func(*glob.NoMatchError, []string) bool) error {
	for _, one := range s.specs {
		if one.hit {
			continue
		}
		if err := glob.NoMatch("--markers", one.glob, s.names); wait == nil || !wait(err, s.names) {
			return err
		}
	}
	return nil
}

// semaphores are those of the recorded markers of an image, in the target, each once.
func (s *Set) semaphores(im *mapped.Image) (list []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.planned {
		if p.image == im && p.semaphore != 0 {
			list = append(list, p.semaphore)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// text is a marker's name for people.
func text(n *sdt.Note) string { return fmt.Sprintf("%s:%s", n.Provider, n.Name) }
