package markers

import (
	"fmt"
	"sync"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// name is what an argument is called.
func name(index int) string { return fmt.Sprintf("arg%d", index+1) }

// Taker is a reel, or what takes its place: it numbers markers.
type Taker interface {
	AddMarkers(markers []reel.Marker) (firstID uint32, err error)
}

// Store numbers markers of recordings that have one reel: a program that is started again and again has its markers there once. It may be
// used by several goroutines.
type Store struct {
	to    Taker
	mu    sync.Mutex // guards known, and the order in which to is called
	known map[string]uint32
}

// NewStore returns the markers of a reel that has none yet; nil for a reel that takes none.
func NewStore(to Taker) *Store {
	if to == nil {
		return nil
	}
	return &Store{to: to, known: map[string]uint32{}}
}

// maxKnown bounds how many markers are remembered; what comes again then stands there twice.
const maxKnown = 1 << 18

func (s *Store) number(m *reel.Marker) (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%d %x %s:%s %d %v", m.Image, m.Addr, m.Provider, m.Name, m.Kind, m.Arguments)
	if id, known := s.known[key]; known {
		return id, nil
	}
	id, err := s.to.AddMarkers([]reel.Marker{*m})
	if err != nil {
		return 0, err
	}
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[key] = id
	return id, nil
}

// Decoder makes marks of events, for one reel. It is used by one goroutine at a time.
type Decoder struct {
	set    *Set
	store  *Store
	images func(im *mapped.Image) reel.ImageID
	ids    []uint32 // the reel's, by the target's less one; 0 for none yet
	marks  []reel.Mark
	values []stub.Value
	titles map[titleKey]uint32 // the reel's numbers of markers with constant titles
}

// For returns what makes marks for a reel, of whose markers store takes care; images are the reel's numbers of images. With no store there are
// none.
func (s *Set) For(store *Store, images func(im *mapped.Image) reel.ImageID) *Decoder {
	return &Decoder{set: s, store: store, images: images}
}

// Said is what a thread has told the recorder itself.
type Said struct {
	Kind sdt.Kind // ThreadName, Pause or Resume
	Name string   // of ThreadName
	Time uint64
}

// Decode makes marks of a thread's events. What the target has written that isn't known is left out, and so is what is said to the recorder,
// which tell is told; it may be nil. Which goroutine runs on the thread, 0 for none, is kept in goroutine, as events say so. The marks are valid
// until the next call.
func (d *Decoder) Decode(events []reel.Event, payloads []ring.Payload, goroutine *uint64, tell func(Said)) ([]reel.Mark, error) {
	d.marks = d.marks[:0]
	if d.store == nil {
		return nil, nil
	}
	for i := range events {
		e := &events[i]
		var data []byte
		if len(payloads) > 0 && payloads[0].Event == i {
			data, payloads = payloads[0].Data, payloads[1:]
		}
		if g, is := e.Goroutine(); is {
			*goroutine = g
			continue
		}
		n := ring.MarkOf(e.Word)
		p := d.set.get(n)
		if p == nil {
			continue
		}
		m := reel.Mark{Time: e.Time, Goroutine: *goroutine, Values: d.valuesOf(p, data)}
		if p.Kind == 0 {
			if tell != nil {
				tell(p.said(&m))
			}
			continue
		}
		var err error
		if p.constant != nil {
			err = d.titled(n, p, &m)
		} else {
			m.Marker, err = d.number(n, p)
		}
		if err != nil {
			return nil, err
		}
		if m.Marker == 0 {
			continue
		}
		d.marks = append(d.marks, m)
	}
	return d.marks, nil
}

// get is a marker by its number, nil if there is none.
func (s *Set) get(n uint32) *planned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 || uint64(n) > uint64(len(s.planned)) {
		return nil
	}
	return s.planned[n-1]
}

// number is the reel's number of a marker.
func (d *Decoder) number(n uint32, p *planned) (uint32, error) {
	if int(n) > len(d.ids) {
		d.ids = append(d.ids, make([]uint32, int(n)-len(d.ids))...)
	}
	if id := d.ids[n-1]; id != 0 {
		return id, nil
	}
	m := p.Marker
	m.Image = d.images(p.image)
	id, err := d.store.number(&m)
	if err == nil {
		d.ids[n-1] = id
	}
	return id, err
}

// valuesOf are the values of a mark.
func (d *Decoder) valuesOf(p *planned, data []byte) []reel.Value {
	d.values = d.values[:0]
	if p.capture != nil {
		d.values = p.capture.Decode(data, d.values)
	}
	if len(p.Arguments) == 0 {
		return nil
	}
	values := make([]reel.Value, len(p.Arguments))
	for i, at := range p.places {
		if at < 0 {
			values[i] = reel.Value{Bits: p.constants[i]}
			continue
		}
		v := d.values[at]
		values[i] = reel.Value{State: reel.ValueState(v.State), Bits: v.Bits, Bytes: v.Bytes, Cut: v.Cut}
	}
	return values
}

// said is what a mark tells the recorder.
func (p *planned) said(m *reel.Mark) Said {
	s := Said{Kind: p.meaning.Kind, Time: m.Time}
	if p.ValueArg >= 0 && p.ValueArg < len(m.Values) {
		s.Name = string(m.Values[p.ValueArg].Bytes)
	}
	return s
}
