package markers

import (
	"strings"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// What markers of a Go program are called is a string in registers, a constant of the program as a rule: then where it is, and how long, says
// what it is, and the event carries no more. So the function of such a marker has two numbers: of the first the title is a constant, of the
// second it is read. In the reel there is a marker of its own for each constant title, as callreel.h makes them.

// constant is what a marker has whose title is a constant.
type constant struct {
	rng   object.Range // link addresses
	slide uint64
	reg   isa.Reg
	other uint32 // the number of the marker with a title that is read
}

// forStubs is what stubs are told of it.
func (k *constant) forStubs() *stub.Constant {
	if k == nil {
		return nil
	}
	return &stub.Constant{Reg: k.reg, From: k.rng.Start + k.slide, Size: k.rng.End - k.rng.Start, Else: ring.MarkID(k.other)}
}

// addWithConstants numbers a marker; the number is that for the stub of its site.
func (s *Set) addWithConstants(p *planned, note *sdt.Note) (number uint32, ok bool) {
	k := p.withConstant(note)
	if k == nil {
		return s.add(p)
	}
	if number, ok = s.add(k); !ok {
		return 0, false
	}
	k.constant.other, ok = s.add(p)
	return number, ok
}

// withConstant makes the marker with a constant title of the one with a title that is read; nil if there is none. The first two of its values are
// where the title is, and its length.
func (p *planned) withConstant(note *sdt.Note) *planned {
	at := p.meaning.TitleArg
	if at < 0 || at >= len(note.Arguments) || note.Arguments[at].Length == "" {
		return nil
	}
	rng, names := golang.Constants(p.image.Object), namesOf(p.image.Object)
	var where, length stub.Operand
	if rng.End <= rng.Start || names.register(&where, note.Arguments[at].Reg) != nil || names.register(&length, note.Arguments[at].Length) != nil {
		return nil
	}
	where.Size, length.Size = 8, 4
	k := &planned{Marker: p.Marker, image: p.image, meaning: p.meaning, semaphore: p.semaphore,
		constant: &constant{rng: rng, slide: p.image.Slide, reg: where.Reg}}
	fields := []stub.Field{{Value: where}, {Value: length}}
	k.Arguments, k.TitleArg, k.IDArg, k.ValueArg = nil, -1, -1, -1
	for i, a := range p.Arguments {
		if i == p.TitleArg {
			continue
		}
		switch i {
		case p.IDArg:
			k.IDArg = len(k.Arguments)
		case p.ValueArg:
			k.ValueArg = len(k.Arguments)
		}
		k.Arguments = append(k.Arguments, a)
		if from := p.places[i]; from >= 0 {
			k.places = append(k.places, len(fields))
			fields = append(fields, p.capture.Fields[from])
		} else {
			k.places = append(k.places, -1)
		}
		k.constants = append(k.constants, p.constants[i])
	}
	k.capture = &stub.Capture{Fields: fields}
	if k.capture.LayOut() != nil {
		return nil
	}
	return k
}

// titleKey is a constant title of a marker: its number, where the string is, and its length.
type titleKey struct {
	number uint32
	addr   uint64
	length uint32
}

// Bounds of constant titles: how many are told apart, and how long they are.
const (
	maxTitles   = 1 << 12
	maxTitleLen = 1 << 10
)

// titled makes a mark's marker one that has the title that the values, as stubs have written them, say. Of what is no constant, or of one title
// too many, it is the marker with a title that is read.
func (d *Decoder) titled(n uint32, p *planned, m *reel.Mark) (err error) {
	key := titleKey{number: n}
	if len(d.values) >= 2 && d.values[0].State == 0 && d.values[1].State == 0 {
		key.addr, key.length = d.values[0].Bits, uint32(d.values[1].Bits)
	}
	if id, known := d.titles[key]; known {
		m.Marker = id
		return nil
	}
	title, ok := p.constant.read(p.image.Object, key)
	if !ok || len(d.titles) >= maxTitles {
		return d.untitled(p, m, title, ok)
	}
	marker := p.Marker
	marker.Title, marker.Image = title, d.images(p.image)
	if name, isLate := strings.CutSuffix(strings.TrimSuffix(marker.Name, "_z2"), "_s"); isLate {
		marker.Name = name + "__" + title
	}
	switch marker.Kind {
	case reel.MarkInstant, reel.MarkCounter:
	default:
		marker.Pair = title
	}
	if m.Marker, err = d.store.number(&marker); err != nil {
		return err
	}
	if d.titles == nil {
		d.titles = map[titleKey]uint32{}
	}
	d.titles[key] = m.Marker
	return nil
}

// untitled makes the mark one of the marker with a title that is read: it is known, or can't be read.
func (d *Decoder) untitled(p *planned, m *reel.Mark, title string, known bool) (err error) {
	other := d.set.get(p.constant.other)
	if other == nil {
		return nil
	}
	if m.Marker, err = d.number(p.constant.other, other); err != nil {
		return err
	}
	if at := other.TitleArg; at >= 0 && at <= len(m.Values) {
		v := reel.Value{State: reel.ValueUnreadable}
		if known {
			v = reel.Value{Bytes: []byte(title)}
		}
		m.Values = append(m.Values[:at:at], append([]reel.Value{v}, m.Values[at:]...)...)
	}
	return nil
}

// read returns the string of a key, out of the program's file.
func (k *constant) read(o *object.Image, key titleKey) (string, bool) {
	at := key.addr - k.slide
	if key.length == 0 || at < k.rng.Start || at >= k.rng.End || uint64(key.length) > k.rng.End-at {
		return "", false
	}
	b, err := o.ReadAddr(at, min(uint64(key.length), maxTitleLen))
	return string(b), err == nil
}
