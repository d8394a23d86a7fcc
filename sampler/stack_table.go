package sampler

import (
	"encoding/binary"

	"github.com/callreel/callreel/unwind"
)

// What a table of stacks may hold, so that days of sampling a program that makes up code
// as it runs do not take all memory. Real programs have some ten thousand stacks.
const (
	maxStacks       = 1 << 20
	maxStackFrames  = 1 << 25
	tooManyStacksAt = 1 // frames that are kept of stacks beyond
)

// stackTable counts equal stacks.
type stackTable struct {
	profile   *Profile
	index     map[string]int32 // by key, see keyOf
	locations map[locationKey]int32
	frames    int // of all stacks
	key       []byte
	ids       []int32
	unnamed   map[int32]*jitNames // locations in code that a JIT compiler may name yet
}

type locationKey struct {
	image *Image
	link  uint64    // the address where there is no image
	jit   *jitNames // of the process, where there is no image
}

func newStackTable(p *Profile) *stackTable {
	return &stackTable{profile: p, index: map[string]int32{}, locations: map[locationKey]int32{}, unnamed: map[int32]*jitNames{}}
}

// location returns the index of a place in code.
func (t *stackTable) location(im *Image, link, addr uint64) int32 {
	key := locationKey{image: im, link: link}
	id, known := t.locations[key]
	if !known {
		id = int32(len(t.profile.Locations))
		t.locations[key] = id
		t.profile.Locations = append(t.profile.Locations, Location{Address: addr, Image: im, Link: link})
	}
	return id
}

// made returns the index of a place in code that a process made itself. Its compiler may
// write down the name a little later than the code runs. Where it has made other code by now
// it is another place.
func (t *stackTable) made(jit *jitNames, im *Image, addr uint64) int32 {
	key := locationKey{im, addr, jit}
	id, known := t.locations[key]
	name := jit.find(addr)
	if known && (name == "" || name == t.profile.Locations[id].Name) {
		return id
	}
	if known && t.unnamed[id] != nil {
		t.profile.Locations[id].Name = name
		delete(t.unnamed, id)
		return id
	}
	id = int32(len(t.profile.Locations))
	t.locations[key] = id
	t.profile.Locations = append(t.profile.Locations, Location{Address: addr, Image: im, Link: addr, Name: name})
	if name == "" {
		t.unnamed[id] = jit
	}
	return id
}

// name gives names to the places in a process's code that have none, as far as they are
// known now.
func (t *stackTable) name(jit *jitNames) {
	if jit == nil || jit.p == nil {
		return
	}
	fresh := false
	for id, of := range t.unnamed {
		if of != jit {
			continue
		}
		if !fresh {
			fresh = true
			jit.refresh()
		}
		l := &t.profile.Locations[id]
		l.Name = jit.known(l.Address)
		delete(t.unnamed, id)
	}
}

// full says that stacks which are not known yet have to be cut short.
func (t *stackTable) full() bool {
	return len(t.profile.Stacks) >= maxStacks || t.frames >= maxStackFrames
}

// find returns the index of a stack, which is added with a count of 0 when it is new.
func (t *stackTable) find(process string, kernel bool, end unwind.Reason, ids []int32) int32 {
	key := append(t.key[:0], process...)
	key = append(key, 0, byte(end), truth(kernel))
	for _, id := range ids {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	t.key = key
	at, known := t.index[string(key)]
	if !known {
		at = int32(len(t.profile.Stacks))
		t.index[string(key)] = at
		t.frames += len(ids)
		t.profile.Stacks = append(t.profile.Stacks, ProfileStack{
			Process: process, Kernel: kernel, End: end, Frames: append([]int32(nil), ids...),
		})
	}
	return at
}

// count counts a sample of a stack.
func (t *stackTable) count(at int32) {
	s := &t.profile.Stacks[at]
	s.Count++
	if s.End != unwind.Complete {
		t.profile.Incomplete++
	}
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}
