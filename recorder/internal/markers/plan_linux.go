package markers

import (
	"cmp"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// kinds are what marks of a kind are in a reel. Those that aren't there are no marks: they say something to the recorder.
var kinds = map[sdt.Kind]reel.MarkKind{
	sdt.Instant: reel.MarkInstant, sdt.Begin: reel.MarkBegin, sdt.End: reel.MarkEnd,
	sdt.AsyncBegin: reel.MarkAsyncBegin, sdt.AsyncStep: reel.MarkAsyncStep, sdt.AsyncEnd: reel.MarkAsyncEnd,
	sdt.FlowOut: reel.MarkFlowOut, sdt.FlowIn: reel.MarkFlowIn, sdt.Counter: reel.MarkCounter,
}

// planning is the planning of one marker.
type planning struct {
	*planned
	note    *sdt.Note
	places  *placer
	types   *typer
	mayRead bool
	notice  Notice
	fields  []stub.Field
}

// plan finds out what is recorded of a marker. What can't be is told, and left out.
func (s *Set) plan(one *spec, note *sdt.Note, means sdt.Meaning, places *placer, types *typer, mayRead bool, notice Notice) *planned {
	p := &planned{meaning: means}
	p.Provider, p.Name, p.Addr = note.Provider, note.Name, note.Addr
	p.Title, p.Pair, p.Kind = means.Title, means.Pair, kinds[means.Kind]
	p.TitleArg, p.IDArg, p.ValueArg = -1, -1, -1
	if means.Kind == sdt.ThreadName && len(note.Arguments) > 0 && note.Arguments[0].Length != "" {
		p.Kind, p.Title = reel.MarkInstant, "goroutine name" // a thread of Go's runtime has none of its own
	}
	if note.Semaphore != 0 {
		p.semaphore = note.Semaphore + places.slide
	}
	w := &planning{planned: p, note: note, places: places, types: types, mayRead: mayRead, notice: notice}
	// What the name says that arguments mean comes first, then what was asked for.
	if i := means.TitleArg; i >= 0 {
		p.TitleArg = w.add(wanted{i, 's'}, true)
	}
	if i := means.IDArg; i >= 0 {
		p.IDArg = w.add(wanted{index: i}, true)
	}
	if i := means.ValueArg; i >= 0 {
		format := byte(0)
		switch {
		case means.Kind == sdt.ThreadName:
			format = 's'
		case means.Float:
			format = 'f'
		}
		p.ValueArg = w.add(wanted{i, format}, true)
	}
	list := one.args
	if one.all {
		list = nil
		for i := range note.Arguments {
			want := wanted{index: i}
			if i < 16 && means.Strings>>i&1 != 0 {
				want.format = 's'
			}
			list = append(list, want)
		}
	}
	for _, want := range list {
		if want.index != means.TitleArg && want.index != means.IDArg && want.index != means.ValueArg {
			w.add(want, !one.all)
		}
	}
	w.finish()
	return p
}

// add plans an argument, and returns its place among the marker's, or -1 where it can't be recorded: that is told if it was asked for.
func (w *planning) add(want wanted, asked bool) int {
	if want.index >= len(w.note.Arguments) {
		if asked {
			w.notice("%s has no argument arg%d: it has %d", text(w.note), want.index+1, len(w.note.Arguments))
		}
		return -1
	}
	a := &w.note.Arguments[want.index]
	o, constant, err := w.places.operand(a)
	if err != nil {
		w.notice("%s: arg%d isn't recorded: %v", text(w.note), want.index+1, err)
		return -1
	}
	f := stub.Field{Value: o}
	arg := reel.Argument{Name: cmp.Or(a.Name, name(want.index)), Kind: kindOf(want.format, &o, a)}
	if !constant && want.format == 0 && a.Name == "" {
		if v, ok := w.types.variable(w.note.Addr, o, w.places.slide); ok {
			typed(&arg, &f.Value, &v)
		}
	}
	if want.format == 's' && a.Length != "" { // of Go
		f.Kind, f.Max = stub.FieldBytes, arguments.DefaultBytes
		f.Len.Size = 8
		if err := w.places.names.register(&f.Len, a.Length); err != nil {
			w.notice("%s: arg%d isn't recorded: %v", text(w.note), want.index+1, err)
			return -1
		}
		arg.Type = "string"
	} else if want.format == 's' {
		if f.Value.Size < 8 || constant {
			w.notice("%s: arg%d isn't recorded: %s is no address of a string", text(w.note), want.index+1, a.Text)
			return -1
		}
		f.Kind, f.Max = stub.FieldString, arguments.DefaultBytes
		arg.Type = "char *"
	}
	if want.format == 'u' {
		f.Value.Signed = false
	}
	if !constant && !f.InRegister() && !w.mayRead {
		w.notice("%s: arg%d isn't recorded: it is in memory, which a seccomp filter forbids to read (process_vm_readv)", text(w.note), want.index+1)
		return -1
	}
	w.Arguments = append(w.Arguments, arg)
	if constant {
		w.planned.places, w.constants = append(w.planned.places, -1), append(w.constants, uint64(a.Value))
	} else {
		w.planned.places, w.constants = append(w.planned.places, len(w.fields)), append(w.constants, 0)
		w.fields = append(w.fields, f)
	}
	return len(w.Arguments) - 1
}

// finish lays the values out; those are left out, from the last on, for which there is no room.
func (w *planning) finish() {
	for len(w.fields) > 0 {
		w.capture = &stub.Capture{Fields: w.fields}
		err := w.capture.LayOut()
		if err == nil {
			return
		}
		last := len(w.Arguments) - 1
		for w.planned.places[last] < 0 {
			last--
		}
		w.notice("%s: %s isn't recorded: %v", text(w.note), w.Arguments[last].Name, err)
		w.drop(last)
	}
	w.capture = nil
}

// drop takes an argument out that is the last of the fields.
func (w *planning) drop(i int) {
	w.fields = w.fields[:len(w.fields)-1]
	p := w.planned
	p.Arguments = append(p.Arguments[:i], p.Arguments[i+1:]...)
	p.places = append(p.places[:i], p.places[i+1:]...)
	p.constants = append(p.constants[:i], p.constants[i+1:]...)
	for _, at := range []*int{&p.TitleArg, &p.IDArg, &p.ValueArg} {
		switch {
		case *at == i:
			*at = -1
		case *at > i:
			*at--
		}
	}
}

// kindOf is how a value is to be read.
func kindOf(format byte, o *stub.Operand, a *sdt.Argument) reel.ArgumentKind {
	switch {
	case format == 's':
		return reel.ArgumentString
	case format == 'x':
		return reel.ArgumentPointer
	case format == 'u':
		return reel.ArgumentUint
	case format == 'f' || a.Float:
		if o.Size == 4 {
			return reel.ArgumentFloat32
		}
		return reel.ArgumentFloat
	case o.Signed:
		return reel.ArgumentInt
	}
	return reel.ArgumentUint
}
