package imports

import (
	"slices"
	"strings"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Set is what is recorded of imports. Slots may be called by several goroutines, the other methods by one at a time.
type Set struct {
	specs []*spec
	names []string // LIB:FUNC of those that were seen
	told  int      // see few
	view  *Process // of the process, as it was when its images were looked at last; nil if they weren't
}

// New reads what is asked for: 'LIB:FUNC' each. An error is an *Error.
func New(texts []string) (*Set, error) {
	s := &Set{}
	for _, text := range texts {
		one, err := parse(text)
		if err != nil {
			return nil, &Error{text, err}
		}
		s.specs = append(s.specs, one)
	}
	return s, nil
}

// Empty says whether nothing is asked for, as of nil.
func (s *Set) Empty() bool { return s == nil || len(s.specs) == 0 }

// wants says whether a slot is for a function that may be asked for, as far as its image tells.
func (s *Set) wants(x *object.Slot) bool {
	if x.Kind == object.SlotWord || x.Symbol.Kind == object.Object || x.Symbol.Kind == object.TLS || x.Symbol.Kind == object.Common {
		return false
	}
	names := glob.Spellings([]string{x.Symbol.Name})
	return slices.ContainsFunc(s.specs, func(one *spec) bool { return glob.MatchAny(one.function, names) })
}

// Slots are the link addresses of an image's slots for functions that may be asked for, each once.
func (s *Set) Slots(o *object.Image) (list []uint64) {
	// What comes before damage is worth having.
	_ = o.VisitSlots(func(x *object.Slot) bool {
		if x.Offset%8 == 0 && s.wants(x) {
			list = append(list, x.Offset)
		}
		return len(list) < maxSlots
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// Look reads the process anew. It is to be called before Pick, and behind that Forget.
func (s *Set) Look(p *process.Process, memory *object.Allowance) error {
	s.Forget()
	var err error
	s.view, err = Read(p, memory)
	return err
}

// Forget lets go of what Look has read.
func (s *Set) Forget() {
	if s != nil && s.view != nil {
		s.view.Close()
		s.view = nil
	}
}

// Picked counts what Pick has done: slots of functions that are asked for, those whose calls are recorded, and why the others aren't. Calls is how
// many places were found that call by a slot which is recorded, Ends of how many of them the end is seen.
type Picked struct {
	Seen, Recorded int
	Refused        map[string]int // by reason
	Calls, Ends    int
}

// Notice tells the user something; its arguments are those of fmt.Printf.
type Notice = func(format string, args ...any)

// Recorded says whether a function at an address of the target is recorded by sites of its own.
type Recorded = func(addr uint64) bool

// Pick takes the slots of an image for functions that are asked for, with IDs from id on. It must come behind the picking of all images' functions.
func (s *Set) Pick(im *mapped.Image, id uint32, recorded Recorded, notice Notice) Picked {
	n := Picked{Refused: map[string]int{}}
	if s.Empty() || len(im.Probe.Slotted) == 0 || s.view == nil || len(im.Text) == 0 {
		return n
	}
	i := slices.IndexFunc(s.view.Images, func(x *Image) bool {
		return x.Slide == im.Slide && x.dev == im.Text[0].Dev && x.inode == im.Text[0].Inode
	})
	if i < 0 {
		return n
	}
	im.FirstImport = id
	list, _ := s.view.Slots(s.view.Images[i], s.wants)
	hosts := map[uint64]bool{}
	for k := range im.Traced {
		hosts[im.Traced[k].Addr] = true
	}
	for k := range list {
		x := &list[k]
		at, planned := slices.BinarySearchFunc(im.Probe.Slotted, x.Offset, func(p plan.Slot, a uint64) int {
			switch {
			case p.Addr < a:
				return -1
			case p.Addr > a:
				return 1
			}
			return 0
		})
		one := s.specOf(x)
		if one == nil || !planned || !s.view.IsFunction(x) {
			continue
		}
		p := &im.Probe.Slotted[at]
		n.Seen++
		if why := s.refusal(im, x, p, recorded); why != "" {
			n.Refused[why]++
			if !strings.ContainsAny(one.function, "*?[") {
				s.few(notice)("--imports %s: the slot at %#x of %s can't be recorded: %s", one.text, x.Addr, im.Module, why)
			}
			continue
		}
		sites, ends := s.returns(im, p, hosts)
		n.Calls, n.Ends = n.Calls+p.Calls, n.Ends+ends
		target := x.Value
		if x.Verdict == Lazy {
			target = x.Target
		}
		im.Imports = append(im.Imports, stub.Probe{
			Function: stub.ImportFunction(x.Library()+":"+strings.Clone(x.Symbol.Name), x.Offset, sites), Image: im.Probe, ID: id, Slide: im.Slide,
			Import: &stub.Import{Slot: x.Addr, Was: x.Value, Target: target, Entry: p.Entry},
		})
		id++
		n.Recorded++
	}
	im.HasImports = n.Recorded > 0
	return n
}

// specOf is the last that asks for a slot's function; it notes that it is there.
func (s *Set) specOf(x *Slot) (found *spec) {
	names := glob.Spellings([]string{x.Symbol.Name})
	var libraries []string
	for _, im := range []*Image{x.To, x.Expected} {
		if im != nil && (x.Verdict != Lazy || im == x.Expected) {
			libraries = append(libraries, im.Module, im.Object.SoName())
		}
	}
	if len(libraries) > 0 {
		s.see(libraries[0] + ":" + x.Symbol.Name)
	}
	for _, one := range s.specs {
		if glob.MatchAny(one.function, names) && (glob.MatchAny(one.library, libraries) || one.library == "*") {
			one.hit, found = true, one
		}
	}
	return found
}

// returns are the sites where calls by a slot return to, of so many calls.
func (s *Set) returns(im *mapped.Image, p *plan.Slot, hosts map[uint64]bool) (sites []plan.Site, ends int) {
	for _, k := range p.Returns {
		m := &im.Returns[k-len(im.Probe.Marks)]
		if m.Alone.Tier == plan.TierNone || hosts[m.Host] && m.With != plan.MarkApart || s.hooked(im, m) {
			continue
		}
		ends++
		sites = append(sites, m.Alone.Sites...)
	}
	return sites, ends
}

// hooked says whether a place has a hook's site.
func (s *Set) hooked(im *mapped.Image, m *plan.Mark) bool {
	for i := range im.Hooked {
		for _, h := range im.Hooked[i].Patched() {
			if slices.ContainsFunc(m.Alone.Sites, func(s plan.Site) bool { return h.Addr < s.End() && s.Addr < h.End() }) {
				return true
			}
		}
	}
	return false
}

// refusal says why a slot isn't recorded, "" if it is.
func (s *Set) refusal(im *mapped.Image, x *Slot, p *plan.Slot, recorded Recorded) string {
	m := process.FindMapping(s.view.maps, x.Addr)
	target := x.Value
	if x.Verdict == Lazy {
		target = x.Target
	}
	switch {
	case im.Probe.Loader:
		return plan.ReasonLoader.String()
	case im.Probe.Go != nil:
		return plan.ReasonGo.String()
	case p.Taken != 0:
		return "address-taken"
	case !p.Used:
		return "no-call-found"
	case x.Verdict == Undefined || x.Verdict == Unrelocated || x.Verdict == Unreadable:
		return x.Verdict.String()
	case x.Verdict == Lazy && (x.Target == 0 || !x.Sure || s.view.audited()):
		return x.Verdict.String()
	case m == nil || m.Perm&(process.PermShared|process.PermExec) != 0:
		return "not-private-data"
	case recorded(target):
		return "recorded-itself"
	case p.Entry == 0:
		return plan.ReasonOutside.String()
	}
	if to := process.FindMapping(s.view.maps, target); to == nil || to.Perm&process.PermExec == 0 {
		return plan.ReasonUnmapped.String()
	}
	return ""
}

// see notes a name.
func (s *Set) see(name string) {
	const most = 1 << 14
	if len(s.names) < most && !slices.Contains(s.names, name) {
		s.names = append(s.names, strings.Clone(name))
	}
}

// few lets a handful of notices through.
func (s *Set) few(notice Notice) Notice {
	const most = 8
	return func(format string, args ...any) {
		switch s.told++; {
		case s.told <= most:
			notice(format, args...)
		case s.told == most+1:
			notice("there are more imports that can't be recorded: the summary counts why")
		}
	}
}

// Check returns an error for the first option that is about no import, unless wait, which may be nil, says of it that one may come.
func (s *Set) Check(wait func(*glob.NoMatchError, []string) bool) error {
	if s == nil {
		return nil
	}
	for _, one := range s.specs {
		if one.hit {
			continue
		}
		if err := glob.NoMatch("--imports", one.text, s.names); wait == nil || !wait(err, s.names) {
			return err
		}
	}
	return nil
}
