package sdt

import (
	"fmt"
	"strings"
)

// Kind is what the passing of a marker says.
type Kind uint8

// The kinds.
const (
	Instant    Kind = iota + 1
	Begin           // a span of the thread begins
	End             // the innermost one with the same Pair ends, or, with no Pair, the innermost of the provider
	AsyncBegin      // an asynchronous span, which Pair and an ID tell from others
	AsyncStep
	AsyncEnd
	FlowOut // of Pair and an ID
	FlowIn
	Counter    // has a value
	ThreadName // the thread gives itself a name
	Pause      // recording is to pause
	Resume
)

var kindNames = [...]string{Instant: "instant", Begin: "begin", End: "end", AsyncBegin: "async-begin", AsyncStep: "async-step",
	AsyncEnd: "async-end", FlowOut: "flow-out", FlowIn: "flow-in", Counter: "counter", ThreadName: "thread-name", Pause: "pause", Resume: "resume"}

// String is what `callreel markers` shows.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Meaning is what is known of a marker by its name.
type Meaning struct {
	Kind Kind
	// Title is what the span, the flow, the counter or the instant is called; "" if the argument TitleArg says it at run time.
	Title string
	// Pair is what begin, step and end have in common; "" for ends that name nothing.
	Pair string
	// TitleArg, IDArg and ValueArg are which arguments, counted from 0, are the title, the ID of asynchronous spans and flows, and the value
	// of a counter, or a thread's name; -1 for none. Float says that the value is the bits of a double.
	TitleArg, IDArg, ValueArg int
	Float                     bool
	// Strings has bit i set if argument i, counted from 0, is the address of a string.
	Strings uint16
}

// Provider is that of markers that are made by callreel's header, whose names say what they are.
const Provider = "callreel"

// Pair says that a marker of name Begin begins what one of name End ends. Names may have one * each, which stand for the same.
type Pair struct{ Begin, End string }

// ParsePair reads what is given as 'a=b'.
func ParsePair(text string) (Pair, error) {
	begin, end, ok := strings.Cut(text, "=")
	begin, end = strings.TrimSpace(begin), strings.TrimSpace(end)
	if !ok || begin == "" || end == "" || begin == end || strings.Contains(end, "=") {
		return Pair{}, fmt.Errorf("%q is no pair: give 'begin=end', such as 'query__start=query__done'", text)
	}
	if strings.Count(begin, "*") > 1 || strings.Count(begin, "*") != strings.Count(end, "*") {
		return Pair{}, fmt.Errorf("%q: both names may have one *, or none", text)
	}
	return Pair{begin, end}, nil
}

// match returns what the * in a pattern stands for.
func match(pattern, name string) (stem string, ok bool) {
	front, back, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern, pattern == name
	}
	if len(name) < len(front)+len(back) || !strings.HasPrefix(name, front) || !strings.HasSuffix(name, back) {
		return "", false
	}
	return name[len(front) : len(name)-len(back)], true
}

// usual are the pairs that are known by their names. What begins may end in several ways.
var usual = []Pair{{"*__start", "*__done"}, {"*__start", "*__end"}, {"*__begin", "*__end"}, {"*__entry", "*__return"}, {"*__entry", "*__exit"}, {"*__start", "*__return"},
	{"*__begin", "*__done"}, {"*-begin", "*-end"}, {"*-start", "*-done"}, {"*-entry", "*-return"}, {"*__enter", "*__exit"}, {"*__start", "*__stop"},
	{"*__start", "*__commit"}, {"*__start", "*__abort"}, {"*__start", "*__rollback"}, {"*__begin", "*__commit"}, {"*__begin", "*__abort"},
	{"*__begin", "*__rollback"}, {"*__start", "*__complete"}, {"*__start", "*__finish"}}

// Meanings says what each of the notes of a program is: by pairs that were given, by those that names make, if both ends are there, and by
// what names of callreel's own provider say. Pairs may have a provider in front, as in 'postgresql:query__start=postgresql:query__done'.
func Meanings(notes []Note, pairs []Pair) []Meaning {
	type key struct{ provider, name string }
	there := map[key]bool{}
	for i := range notes {
		there[key{notes[i].Provider, notes[i].Name}] = true
	}
	// both says whether the marker of a stem's other end is there.
	both := func(provider, pattern, stem string) bool {
		return there[key{provider, strings.Replace(pattern, "*", stem, 1)}]
	}
	of := func(n *Note) Meaning {
		if n.Provider == Provider {
			return named(n.Name)
		}
		for _, p := range pairs {
			begin, end := within(n.Provider, p.Begin), within(n.Provider, p.End)
			if stem, ok := match(begin, n.Name); ok {
				return span(Begin, titleOf(stem, begin))
			}
			if stem, ok := match(end, n.Name); ok {
				if !strings.Contains(end, "*") {
					stem = begin
				}
				return span(End, titleOf(stem, begin))
			}
		}
		for _, p := range usual {
			if stem, ok := match(p.Begin, n.Name); ok && stem != "" && both(n.Provider, p.End, stem) {
				return span(Begin, stem)
			}
			if stem, ok := match(p.End, n.Name); ok && stem != "" && both(n.Provider, p.Begin, stem) {
				return span(End, stem)
			}
		}
		return Meaning{Kind: Instant, Title: n.Name, TitleArg: -1, IDArg: -1, ValueArg: -1}
	}
	all := make([]Meaning, len(notes))
	for i := range notes {
		all[i] = of(&notes[i])
	}
	return all
}

// within takes the provider off a pattern; a pattern of another provider matches nothing.
func within(provider, pattern string) string {
	of, name, has := strings.Cut(pattern, ":")
	switch {
	case !has:
		return pattern
	case of == provider:
		return name
	}
	return ":"
}

// titleOf is the title of a span whose begin was given: what the * stands for, or without one the name but for what usual names end with.
func titleOf(stem, begin string) string {
	if strings.Contains(begin, "*") {
		return stem
	}
	for _, p := range usual {
		if s, ok := match(p.Begin, begin); ok && s != "" {
			return s
		}
	}
	return begin
}

func span(k Kind, title string) Meaning {
	return Meaning{Kind: k, Title: title, Pair: title, TitleArg: -1, IDArg: -1, ValueArg: -1}
}

// named is what the names of callreel's own provider say: KIND__TITLE, or KIND_s for a title that is the first argument. KIND_z13__TITLE
// and KIND_s_z2 say that arguments are strings: the first and the third, the second.
func named(name string) Meaning {
	word, title, _ := strings.Cut(name, "__")
	word, texts := stringArguments(word)
	word, late := strings.CutSuffix(word, "_s")
	m := Meaning{Title: title, TitleArg: -1, IDArg: -1, ValueArg: -1, Strings: texts}
	first := 0 // the first argument that isn't the title
	if late {
		m.Title, m.TitleArg, first = "", 0, 1
	}
	switch word {
	case "begin":
		m.Kind, m.Pair = Begin, m.Title
	case "end":
		m.Kind, m.Pair = End, m.Title
	case "async_begin", "async_step", "async_end", "flow_out", "flow_in":
		m.Kind = map[string]Kind{"async_begin": AsyncBegin, "async_step": AsyncStep, "async_end": AsyncEnd, "flow_out": FlowOut, "flow_in": FlowIn}[word]
		m.Pair, m.IDArg = m.Title, first
	case "counter", "counterf":
		m.Kind, m.ValueArg, m.Float = Counter, first, word == "counterf"
	case "instant":
		m.Kind = Instant
	case "thread_name":
		m = Meaning{Kind: ThreadName, TitleArg: -1, IDArg: -1, ValueArg: 0}
	case "pause", "resume":
		m.Kind = map[string]Kind{"pause": Pause, "resume": Resume}[word]
		m.Title, m.TitleArg = "", -1
	default:
		return Meaning{Kind: Instant, Title: name, TitleArg: -1, IDArg: -1, ValueArg: -1}
	}
	return m
}

// stringArguments takes _z13 off the end of a kind, which says that the first and the third argument are strings.
func stringArguments(word string) (kind string, mask uint16) {
	kind, digits, has := strings.Cut(word, "_z")
	if !has || digits == "" || strings.Trim(digits, "123456789") != "" {
		return word, 0
	}
	for _, d := range []byte(digits) {
		mask |= 1 << (d - '1')
	}
	return kind, mask
}
