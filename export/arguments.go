package export

import (
	"math"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// values are what is recorded of the arguments of a call that begins, or of the result of one that ends.
type values struct {
	arguments []reel.Argument
	values    []reel.Value
}

// n is how many there are.
func (v values) n() int { return min(len(v.arguments), len(v.values)) }

// from says which thread's events come next.
func (s *strand) from(thread uint32) {
	if !s.f.HasArguments() {
		return
	}
	if s.readers == nil {
		s.readers = map[uint32]*reel.ValueReader{}
	}
	if s.readers[thread] == nil {
		s.readers[thread] = s.f.Values(thread)
	}
	s.reader = s.readers[thread]
}

// look finds what is recorded of a call.
func (s *strand) look(call *reel.Call, atReturn bool) {
	s.values = values{}
	if s.reader == nil {
		return
	}
	args := s.f.Arguments(call.Func, atReturn)
	if args == nil {
		return
	}
	time := call.Start
	if atReturn {
		if time = call.End; call.Flags&(reel.Unfinished|reel.Implicit) != 0 {
			return
		}
	}
	number := uint64(reel.UnknownNumber)
	if s.numbered {
		number = s.base + uint64(s.pairer.Index())
	}
	s.values = values{args, s.reader.Of(call.Func, atReturn, time, call.SP, number)}
}

// appendValues appends them as members of a JSON object.
func appendValues(b []byte, v values) []byte {
	for i := range v.n() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, cut(v.arguments[i].Name, maxName)), ':')
		switch x := v.arguments[i].JSON(v.values[i]).(type) {
		case nil:
			b = append(b, "null"...)
		case int64:
			b = strconv.AppendInt(b, x, 10)
		case uint64:
			b = strconv.AppendUint(b, x, 10)
		case bool:
			b = strconv.AppendBool(b, x)
		case float64:
			b = strconv.AppendFloat(b, x, 'g', -1, 64)
		case string:
			b = appendJSON(b, x)
		}
	}
	return b
}

// annotate annotates an event with them.
func (p *perfetto) annotate(v values) {
	for i := range v.n() {
		name := validText(cut(v.arguments[i].Name, maxName))
		var kind, bits uint64
		switch x := v.arguments[i].JSON(v.values[i]).(type) {
		case nil:
			p.text(name, "null")
			continue
		case string:
			p.text(name, x)
			continue
		case int64:
			kind, bits = annotationInt, uint64(x)
		case uint64:
			kind, bits = annotationNumber, x
		case bool:
			kind = annotationBool
			if x {
				bits = 1
			}
		case float64:
			p.inner = p.inner[:0]
			p.inner.text(annotationName, name)
			p.inner.fixed(annotationDouble, math.Float64bits(x))
			p.event.bytes(eventAnnotation, p.inner)
			continue
		}
		p.inner = p.inner[:0]
		p.inner.text(annotationName, name)
		p.inner.always(kind, bits)
		p.event.bytes(eventAnnotation, p.inner)
	}
}
