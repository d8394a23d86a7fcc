package markers

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/testimage"
	"github.com/callreel/callreel/reel"
)

// taken are markers that a reel was given.
type taken []reel.Marker

func (t *taken) AddMarkers(list []reel.Marker) (uint32, error) {
	first := uint32(len(*t)) + 1
	*t = append(*t, list...)
	return first, nil
}

// slide is where the image of goImage is, beyond where it says.
const slide = 0x10000000

// goImage is a Go program with its markers picked.
func goImage(t *testing.T, arch string) (*Set, *mapped.Image) {
	t.Helper()
	o := testimage.Open(t, realtest.BuildGoFor(t, arch, "gomarks"))
	im := &mapped.Image{Module: "gomarks", Object: o, Slide: slide, Notes: golang.MarkNotes(o)}
	for i := range im.Notes {
		im.Marks = append(im.Marks, plan.Mark{Addr: im.Notes[i].Addr, Alone: plan.Function{Tier: plan.TierExitSite, Sites: make([]plan.Site, 1)}})
	}
	s, err := New(Options{Markers: []string{"callreel:*"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Pick(t.Context(), im, true, func(format string, args ...any) { t.Errorf(format, args...) }); n.Recorded != len(im.Notes) || n.Recorded == 0 {
		t.Fatalf("%+v", n)
	}
	return s, im
}

// numberOf is the number of a marker by its name, and the address at which its title is to be to be a constant.
func numberOf(t *testing.T, s *Set, name string) uint32 {
	t.Helper()
	for i, p := range s.planned {
		if p.Name == name && p.constant != nil {
			return uint32(i + 1)
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// find is where some bytes are in a program's constants, as loaded.
func find(t *testing.T, o *object.Image, text string) uint64 {
	t.Helper()
	rng := golang.Constants(o)
	data, err := o.ReadAddr(rng.Start, rng.End-rng.Start)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		if len(data)-i >= len(text) && string(data[i:i+len(text)]) == text {
			return rng.Start + uint64(i) + slide
		}
	}
	t.Fatalf("%q isn't there", text)
	return 0
}

// payload is what a stub writes: where the title is, its length, and a value.
func payload(c *stub.Capture, addr uint64, length uint32, value uint64) []byte {
	b := make([]byte, c.Fixed())
	for i, v := range []uint64{addr, uint64(length), value}[:len(c.Fields)] {
		if at := b[c.Fields[i].Place():]; i == 1 {
			binary.LittleEndian.PutUint32(at, uint32(v))
		} else {
			binary.LittleEndian.PutUint64(at, v)
		}
	}
	return b
}

// A title that is a constant of the program makes a marker of its own; what the target makes up, or is too much, is one of the marker whose
// title is a value.
func TestConstantTitlesAreMarkersOfTheirOwn(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) { wantTitles(t, arch) })
	}
}

func wantTitles(t *testing.T, arch string) {
	t.Helper()
	s, im := goImage(t, arch)
	var to taken
	d := s.For(NewStore(&to), func(*mapped.Image) reel.ImageID { return 1 })
	n := numberOf(t, s, "counter_s")
	c := s.planned[n-1].capture
	goroutine := uint64(0)
	one := func(addr uint64, length uint32) (*reel.Marker, []reel.Value) {
		t.Helper()
		marks, err := d.Decode([]reel.Event{reel.Switch(1, 9), {Time: 5, Word: ring.MarkID(n) << 1}}, []ring.Payload{{Event: 1, Data: payload(c, addr, length, 42)}}, &goroutine, nil)
		if err != nil || len(marks) != 1 || marks[0].Goroutine != 9 {
			t.Fatalf("%+v, %v", marks, err)
		}
		return &to[marks[0].Marker-1], marks[0].Values
	}
	at := find(t, im.Object, "queue")
	for range 3 { // it is added once
		m, values := one(at, 5)
		if m.Title != "queue" || m.Name != "counter__queue" || m.Kind != reel.MarkCounter || m.TitleArg != -1 || m.ValueArg != 0 ||
			!reflect.DeepEqual(values, []reel.Value{{Bits: 42}}) {
			t.Errorf("%+v: %+v", m, values)
		}
	}
	if len(to) != 1 {
		t.Errorf("%d markers", len(to))
	}
	rng := golang.Constants(im.Object)
	for _, bad := range []struct {
		addr   uint64
		length uint32
	}{{0, 5}, {at, 0}, {rng.End + slide - 3, 4}, {rng.End + slide, 1}, {rng.Start + slide - 1, 5}, {at, ^uint32(0)}, {^uint64(0), 1}} {
		m, values := one(bad.addr, bad.length)
		if m.Title != "" || m.TitleArg != 0 || len(values) != 2 || values[0].State != reel.ValueUnreadable || values[1].Bits != 42 {
			t.Errorf("%+v: %+v: %+v", bad, m, values)
		}
	}
	// There are no more titles than are told apart; others are values.
	for i := range uint64(2 * maxTitles) {
		m, values := one(rng.Start+slide+i, 3)
		if m.Title == "" && (len(values) != 2 || values[0].State != reel.ValueKnown || len(values[0].Bytes) != 3) {
			t.Fatalf("%+v: %+v", m, values)
		}
	}
	if len(to) > maxTitles+1 {
		t.Errorf("%d markers", len(to))
	}
	// A payload that is too short says nothing.
	marks, err := d.Decode([]reel.Event{{Word: ring.MarkID(n) << 1}}, []ring.Payload{{Data: nil}}, &goroutine, nil)
	if err != nil || len(marks) != 1 || to[marks[0].Marker-1].Title != "" {
		t.Errorf("%+v, %v", marks, err)
	}
}

// What stubs are told is where constants are, as loaded, and which marker has the others.
func TestStubsKnowWhereConstantsAre(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) { wantConstants(t, arch) })
	}
}

func wantConstants(t *testing.T, arch string) {
	t.Helper()
	s, im := goImage(t, arch)
	rng := golang.Constants(im.Object)
	table := s.AddTo(nil)
	n := numberOf(t, s, "begin_s_z2")
	k := table[ring.MarkID(n)].Constant
	if k == nil || k.Reg != 0 || k.From != rng.Start+slide || k.Size != rng.End-rng.Start || table[k.Else] == nil || table[k.Else].Constant != nil {
		t.Fatalf("%+v", k)
	}
	// The text is read, constant or not; the name is read in the second alone.
	kinds := func(c *stub.Capture) string {
		text := ""
		for i := range c.Fields {
			text += fmt.Sprint(c.Fields[i].Kind)
		}
		return text
	}
	first, second := kinds(table[ring.MarkID(n)].Entry), kinds(table[k.Else].Entry)
	if first != fmt.Sprint(stub.FieldValue)+fmt.Sprint(stub.FieldValue)+fmt.Sprint(stub.FieldBytes) || second != fmt.Sprint(stub.FieldBytes)+fmt.Sprint(stub.FieldBytes) {
		t.Errorf("%s and %s", first, second)
	}
}
