package tables

import (
	"fmt"
	"sync"

	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// Functions are those of one recording. Its methods may be called by several goroutines.
type Functions interface {
	// Add adds the functions of ranges, whose target IDs follow those of all before and end before next. It must come before their first
	// event.
	Add(ranges []target.IDRange, next uint32) error
	// Translate gives events the reel's numbers of their functions. Events of functions that there are not are left as they are: what reads
	// reels says that it doesn't know them.
	Translate(events []reel.Event) error
	// IDsOf are the reel's numbers of functions, by the target's IDs; 0 of those that have none.
	IDsOf(ids []uint32) ([]uint32, error)
}

// Fixed are functions whose numbers in the reel are their target IDs.
type Fixed struct {
	images *Images
	to     Reel
	next   uint32
}

// NewFixed returns functions of a reel that has none yet.
func NewFixed(images *Images, to Reel) *Fixed { return &Fixed{images: images, to: to, next: 1} }

// Add puts the functions into the reel at once, in the order of their IDs.
func (f *Fixed) Add(ranges []target.IDRange, next uint32) error {
	var table []reel.Function
	for i := range ranges {
		g := &ranges[i]
		for k := range g.Count {
			table = append(table, f.images.describe(g, k))
		}
	}
	got, err := f.to.AddFunctions(table)
	if err == nil && got != f.next {
		err = fmt.Errorf("callreel: the reel's next function is %d, not %d", got, f.next)
	}
	f.next = next
	return err
}

// IDsOf are the same.
func (f *Fixed) IDsOf(ids []uint32) ([]uint32, error) { return ids, nil }

// Translate does nothing.
func (*Fixed) Translate([]reel.Event) error { return nil }

// Late puts functions into the reel when their first event comes.
type Late struct {
	images *Images
	noted  func(id uint32) (reel.Function, bool) // in place of ranges, if not nil
	also   Noter

	mu     sync.Mutex // guards what follows; the store's lock may be taken while it is held
	store  Store
	ids    []uint32 // the reel's, by the target's; 0 for none yet
	ranges []target.IDRange
	names  ring.Names      // of ids, or empty if there are new ones since
	own    []uint32        // see Own
	fresh  []reel.Function // of introduce
	at     []uint32        // their target IDs
}

// NewLate returns functions none of which is in the reel yet.
func NewLate(images *Images, store Store) *Late { return &Late{images: images, store: store} }

// Noter is told which images and functions there are.
type Noter interface {
	Image(im *mapped.Image)
	// Functions is told of functions whose target IDs follow those of all before and end before next.
	Functions(ranges []target.IDRange, next uint32)
}

// AlsoTo lets n know all functions that are added from now on.
func (n *Late) AlsoTo(o Noter) { n.also = o }

// NewNoted returns functions below next of which of says what a reel says.
func NewNoted(store Store, next uint32, of func(id uint32) (reel.Function, bool)) *Late {
	return &Late{store: store, noted: of, ids: make([]uint32, next)}
}

// Targets are the target's IDs of the functions that the reel has, by its numbers of them; 0 for those of other recordings. They don't change.
func (n *Late) Targets() []uint32 { return n.Names().Targets }

// Names are the reel's words for events of functions that it has. They don't change: when it has more there are others.
func (n *Late) Names() ring.Names {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names.Words != nil {
		return n.names
	}
	words, targets := make([]uint32, 2*len(n.ids)), make([]uint32, 1, 256)
	for of, id := range n.ids {
		if id == 0 {
			continue
		}
		words[2*of], words[2*of+1] = id<<1, id<<1|1
		if int(id) >= len(targets) {
			targets = append(targets, make([]uint32, int(id)+1-len(targets))...)
		}
		targets[id] = uint32(of)
	}
	n.names = ring.Names{Words: words, Targets: targets}
	return n.names
}

// Own are the target's own words for events of functions that there are. They don't change.
func (n *Late) Own() ring.Names {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.own) != 2*len(n.ids) {
		n.own = make([]uint32, 2*len(n.ids))
		for i := 2; i < len(n.own); i++ { // there is no function 0
			n.own[i] = uint32(i)
		}
	}
	return ring.Names{Words: n.own}
}

// Add lets events of the functions come.
func (n *Late) Add(ranges []target.IDRange, next uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids = append(n.ids, make([]uint32, int(next)-len(n.ids))...)
	n.names = ring.Names{}
	n.ranges = append(n.ranges, ranges...)
	if n.also != nil {
		n.also.Functions(ranges, next)
	}
	return nil
}

// Translate puts the functions into the reel that aren't there.
func (n *Late) Translate(events []reel.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	events = n.translateKnown(events)
	if len(events) == 0 {
		return nil
	}
	if err := n.introduce(events); err != nil {
		return err
	}
	for len(events) > 0 {
		if events = n.translateKnown(events); len(events) > 0 {
			events = events[1:] // of a function that there isn't
		}
	}
	return nil
}

// translateKnown gives events the reel's numbers up to the first whose function has none, and returns the others. Nearly always there are none.
func (n *Late) translateKnown(events []reel.Event) []reel.Event {
	ids := n.ids
	for i := range events {
		e := &events[i]
		id := e.Word >> 1
		if uint64(id) >= uint64(len(ids)) || ids[id] == 0 {
			return events[i:]
		}
		e.Word = ids[id]<<1 | e.Word&1
	}
	return nil
}

// IDOf is the reel's number of a function, which is put there if it isn't; 0 if it can't be.
func (n *Late) IDOf(id uint32) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.introduce([]reel.Event{reel.Entry(0, 0, id)}); err != nil || uint64(id) >= uint64(len(n.ids)) {
		return 0
	}
	return n.ids[id]
}

// IDsOf are the reel's numbers of functions, which are put there together if they aren't; 0 of those that can't be.
func (n *Late) IDsOf(ids []uint32) ([]uint32, error) {
	events := make([]reel.Event, len(ids))
	for i, id := range ids {
		events[i] = reel.Entry(0, 0, id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.introduce(events); err != nil {
		return nil, err
	}
	list := make([]uint32, len(ids))
	for i, id := range ids {
		if uint64(id) < uint64(len(n.ids)) {
			list[i] = n.ids[id]
		}
	}
	return list, nil
}

// pendingID stands for a number that the reel has not given yet.
const pendingID = ^uint32(0)

// introduce puts the functions of events into the reel that are not in it. The caller holds mu.
func (n *Late) introduce(events []reel.Event) error {
	n.fresh, n.at = n.fresh[:0], n.at[:0]
	for i := range events {
		id := events[i].Word >> 1
		if uint64(id) >= uint64(len(n.ids)) || n.ids[id] != 0 {
			continue
		}
		f, ok := n.describe(id)
		if !ok {
			continue
		}
		n.ids[id] = pendingID
		n.fresh, n.at = append(n.fresh, f), append(n.at, id)
	}
	if len(n.fresh) == 0 {
		return nil
	}
	n.names = ring.Names{}
	err := n.store.Functions(n.fresh, func(i int, id uint32) { n.ids[n.at[i]] = id })
	if err != nil { // which ends the recording
		for _, id := range n.at {
			n.ids[id] = 0
		}
	}
	return err
}

// describe is what the reel says of a function.
func (n *Late) describe(id uint32) (reel.Function, bool) {
	if n.noted != nil {
		return n.noted(id)
	}
	g, k := target.FindRange(n.ranges, id)
	if g == nil {
		return reel.Function{}, false
	}
	return n.images.describe(g, k), true
}
