package export

import (
	"compress/gzip"
	"io"
	"time"
)

// Fields of the messages (proto/profile.proto of github.com/google/pprof).
const (
	profileSampleType    = 1
	profileSample        = 2
	profileMapping       = 3
	profileLocation      = 4
	profileFunction      = 5
	profileStringTable   = 6
	profileTimeNanos     = 9
	profileDurationNanos = 10
	profilePeriodType    = 11
	profilePeriod        = 12
	profileComment       = 13

	valueTypeType = 1
	valueTypeUnit = 2

	sampleLocationID = 1
	sampleValue      = 2
	sampleLabel      = 3
	labelKey         = 1
	labelStr         = 2

	mappingID           = 1
	mappingStart        = 2
	mappingLimit        = 3
	mappingOffset       = 4
	mappingFilename     = 5
	mappingBuildID      = 6
	mappingHasFunctions = 7

	locationID      = 1
	locationMapping = 2
	locationAddress = 3
	locationLine    = 4
	lineFunction    = 1
	lineLine        = 2

	functionID         = 1
	functionName       = 2
	functionSystemName = 3
	functionFilename   = 4
)

// PProf writes stacks as a gzipped profile.proto, with two values for each: how many
// samples there were, and the nanoseconds that they stand for. The process's name is
// the label "process".
func PProf(w io.Writer, s *Stacks) error {
	z := gzip.NewWriter(w)
	e := pprofEncoder{
		w: z, stacks: s, strings: map[string]uint64{"": 0}, list: []string{""}, functions: map[StackCall]uint64{},
	}
	e.header()
	for k := range s.Images {
		e.image(k)
	}
	for k := range s.Locations {
		e.location(k)
	}
	for k := range s.Stacks {
		e.sample(&s.Stacks[k])
	}
	for _, text := range e.list {
		e.out.text(profileStringTable, text)
		e.flush()
	}
	if e.err != nil {
		return e.err
	}
	return z.Close()
}

// pprofEncoder writes one message after the other; fields of a message may be in any
// order, so that names can be written last.
type pprofEncoder struct {
	w      io.Writer
	err    error
	stacks *Stacks

	strings   map[string]uint64 // index in list
	list      []string
	functions map[StackCall]uint64 // identity; that of frames without a place as well
	special   map[string]uint64    // identity of such a frame's location

	out, message, inner, ids protobuf
}

// flush hands on what is complete.
func (e *pprofEncoder) flush() {
	if e.err == nil {
		_, e.err = e.w.Write(e.out)
	}
	e.out = e.out[:0]
}

// valueType writes what a column of the samples, or the period, is counted in.
func (e *pprofEncoder) valueType(field uint64, kind, unit string) {
	e.message = e.message[:0]
	e.message.number(valueTypeType, e.string(kind))
	e.message.number(valueTypeUnit, e.string(unit))
	e.out.bytes(field, e.message)
}

func (e *pprofEncoder) string(text string) uint64 {
	text = validText(text) // proto3 has no others
	at, known := e.strings[text]
	if !known {
		at = uint64(len(e.list))
		e.strings[text] = at
		e.list = append(e.list, text)
	}
	return at
}

func (e *pprofEncoder) header() {
	what := "cpu"
	if e.stacks.Wall {
		what = "wall"
	}
	e.valueType(profileSampleType, "samples", "count")
	e.valueType(profileSampleType, what, "nanoseconds")
	e.valueType(profilePeriodType, what, "nanoseconds")
	e.out.number(profilePeriod, nanoseconds(e.stacks.Period))
	e.out.number(profileTimeNanos, uint64(e.stacks.Begun.UnixNano()))
	e.out.number(profileDurationNanos, nanoseconds(e.stacks.Duration))
	for _, c := range e.stacks.Comments {
		e.out.number(profileComment, e.string(c))
	}
	e.flush()
}

func nanoseconds(d time.Duration) uint64 { return uint64(max(d.Nanoseconds(), 0)) }

// image writes a Mapping. Identities are indices plus one: 0 is none.
func (e *pprofEncoder) image(k int) {
	im := &e.stacks.Images[k]
	m := e.message[:0]
	m.number(mappingID, uint64(k)+1)
	m.number(mappingStart, im.Start)
	m.number(mappingLimit, im.End)
	m.number(mappingOffset, im.Offset)
	m.number(mappingFilename, e.string(im.Path))
	m.number(mappingBuildID, e.string(im.ID))
	m.number(mappingHasFunctions, 1) // or pprof would look for them itself
	e.message = m
	e.out.bytes(profileMapping, m)
	e.flush()
}

// location writes a Location, innermost call first.
func (e *pprofEncoder) location(k int) {
	l := &e.stacks.Locations[k]
	calls := l.Calls
	if len(calls) == 0 {
		calls = []StackCall{{Function: e.stacks.name(l)}}
	}
	for c := range calls {
		e.function(calls[c])
	}
	m := e.message[:0]
	m.number(locationID, uint64(k)+1)
	if l.Image >= 0 {
		m.number(locationMapping, uint64(l.Image)+1)
	}
	m.number(locationAddress, l.Address)
	for c := range calls {
		e.inner = e.inner[:0]
		e.inner.number(lineFunction, e.function(calls[c]))
		e.inner.number(lineLine, uint64(calls[c].Line))
		m.bytes(locationLine, e.inner)
	}
	e.message = m
	e.out.bytes(profileLocation, m)
	e.flush()
}

// function returns the identity of a function, which is written when it is new.
func (e *pprofEncoder) function(c StackCall) uint64 {
	c.Line = 0
	id, known := e.functions[c]
	if known {
		return id
	}
	id = uint64(len(e.functions)) + 1
	e.functions[c] = id
	linkage := c.Linkage
	if linkage == "" {
		linkage = c.Function
	}
	m := e.message[:0]
	m.number(functionID, id)
	m.number(functionName, e.string(c.Function))
	m.number(functionSystemName, e.string(linkage))
	m.number(functionFilename, e.string(c.File))
	e.message = m
	e.out.bytes(profileFunction, m)
	e.flush()
	return id
}

// pseudo returns the identity of the location of a frame that is no code.
func (e *pprofEncoder) pseudo(name string) uint64 {
	if id := e.special[name]; id != 0 {
		return id
	}
	if e.special == nil {
		e.special = map[string]uint64{}
	}
	function := e.function(StackCall{Function: name})
	id := uint64(len(e.stacks.Locations)+len(e.special)) + 1
	e.special[name] = id
	m := e.message[:0]
	m.number(locationID, id)
	e.inner = e.inner[:0]
	e.inner.number(lineFunction, function)
	m.bytes(locationLine, e.inner)
	e.message = m
	e.out.bytes(profileLocation, m)
	e.flush()
	return id
}

// sample writes a Sample, innermost frame first.
func (e *pprofEncoder) sample(s *Stack) {
	e.ids = e.ids[:0]
	if s.Kernel {
		e.ids.varint(e.pseudo(kernelFrame))
	}
	for _, at := range s.Frames {
		e.ids.varint(uint64(at) + 1)
	}
	if s.Missing != "" {
		e.ids.varint(e.pseudo(missingFrame(s.Missing)))
	}
	m := e.message[:0]
	m.bytes(sampleLocationID, e.ids)
	e.inner = e.inner[:0]
	e.inner.varint(s.Count)
	e.inner.varint(s.Count * nanoseconds(e.stacks.Period))
	m.bytes(sampleValue, e.inner)
	e.inner = e.inner[:0]
	e.inner.number(labelKey, e.string("process"))
	e.inner.number(labelStr, e.string(s.Process))
	m.bytes(sampleLabel, e.inner)
	e.message = m
	e.out.bytes(profileSample, m)
	e.flush()
}
