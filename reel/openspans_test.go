package reel

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// spansOf pairs what a thread says, one word a microsecond from the first on: "+a" begins a span of the title a, "-a" ends it, "-" ends the
// innermost, "." is nothing, and "|" is the end of a pause.
func spansOf(t *testing.T, words string) (*File, []*Span) {
	t.Helper()
	var pauses []Pause
	var marks []Mark
	for i, word := range strings.Fields(words) {
		at := 1000 + uint64(i+1)*2600
		switch {
		case word == "|":
			pauses = append(pauses, Pause{From: at - 1300, To: at, By: "command"})
		case word == "-":
			marks = append(marks, Mark{Time: at, Marker: markEnd})
		case word[0] == '+':
			marks = append(marks, Mark{Time: at, Marker: markBeginS, Values: []Value{text(word[1:])}})
		case word[0] == '-':
			marks = append(marks, Mark{Time: at, Marker: markEndS, Values: []Value{text(word[1:])}})
		}
	}
	f := open(t, markReel(t, markHeader, marks))
	f.pauses = pauses
	var spans []*Span
	p := NewSpanPairer(f)
	p.OnSpan = func(s *Span) { spans = append(spans, s) }
	f.AllMarks(func(thread uint32, m *Mark) bool { p.Push(thread, m); return true })
	p.Finish()
	if p.Lost > 0 || p.open != 0 || p.kept != 0 {
		t.Errorf("%d lost, %d open, %d values kept", p.Lost, p.open, p.kept)
	}
	return f, spans
}

// inShort is a span as tests write it: title, from and to in words, depth, "…" at an end that isn't there.
func inShort(s *Span) string {
	word := func(tick uint64) string { return fmt.Sprint((tick - 1000 + 1300) / 2600) }
	from, to := word(s.Begin), word(s.End)
	if s.Unstarted {
		from = "…"
	}
	if s.Unfinished {
		to += "…"
	}
	return fmt.Sprintf("%s %s-%s/%d", s.Title, from, to, s.Depth)
}

func TestSpansMayCross(t *testing.T) {
	for _, c := range []struct{ name, said, want string }{
		{"within each other", "+a +b -b +b -b -a", "b 2-3/1, b 4-5/1, a 1-6/0"},
		{"a transaction of several queries", "+query +tx -query +query -query +query -tx -query", "query 1-3/0, query 4-5/0, tx 2-7/1, query 6-8/0"},
		{"an unnamed end is of the innermost", "+a +b +c -b - -", "b 2-4/1, c 3-5/2, a 1-6/0"},
		{"recursion", "+a +a +a -a -a -a", "a 3-4/2, a 2-5/1, a 1-6/0"},
		{"recursion of two", "+a +b +a +b -b -a -b -a", "b 4-5/3, a 3-6/2, b 2-7/1, a 1-8/0"},
		{"what returns early leaves one open", "+a +b -a +a +b -b -a", "a 1-3/0, b 2-3…/1, b 5-6/1, a 4-7/0"},
		{"and never comes back", "+a +b -a . .", "a 1-3/0, b 2-3…/1"},
		{"what an error left open is over when the next begins", "+a +b +b -b -a", "b 3-4/2, a 1-5/0, b 2-3…/1"},
		{"what a pause swallows", "+a | +a -a +a -a", "a 1-3…/0, a 3-4/0, a 5-6/0"},
		{"a span that is open over a pause", "+a | +b -b -a", "b 3-4/1, a 1-5/0"},
		{"begun before", "-a +b -c -b", "a …-1/0, c …-3/1, b 2-4/0"},
	} {
		_, spans := spansOf(t, c.said)
		var got []string
		for _, s := range spans {
			got = append(got, inShort(s))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s\nis %s\nnot %s", c.name, c.said, s, c.want)
		}
	}
}

// sums are how many spans a title has, whole, without a beginning and without an end, and the greatest depth.
func sums(spans []*Span, title string) (whole, unstarted, unfinished, deepest int) {
	for _, s := range spans {
		deepest = max(deepest, s.Depth)
		switch {
		case s.Title != title:
		case s.Unstarted:
			unstarted++
		case s.Unfinished:
			unfinished++
		default:
			whole++
		}
	}
	return whole, unstarted, unfinished, deepest
}

// A server that jumps out of one request in ten, as PostgreSQL does, has requests that end, and requests that don't; they don't pile up.
func TestSpansThatErrorsLeaveOpenAreTold(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var words []string
	failed := 0
	const n = 20_000
	for range n {
		words = append(words, "+request", "+parse", "-parse")
		if rng.IntN(10) == 0 {
			failed++
			if words = append(words, "+run"); rng.IntN(2) == 0 {
				words = append(words, "+sort")
			}
			continue
		}
		words = append(words, "+run", "-run", "-request")
	}
	_, spans := spansOf(t, strings.Join(words, " "))
	whole, unstarted, unfinished, deepest := sums(spans, "request")
	if whole != n-failed || unfinished != failed || unstarted != 0 || deepest > 40 {
		t.Errorf("%d of %d requests, %d of %d unfinished, %d unstarted, %d deep", whole, n-failed, unfinished, failed, unstarted, deepest)
	}
	if whole, _, _, _ := sums(spans, "parse"); whole != n {
		t.Errorf("%d of %d parses", whole, n)
	}
}

// Trees are walked by functions that call themselves: nothing of that is taken for stale, but perhaps what comes first.
func TestRecursionIsTold(t *testing.T) {
	for _, children := range []int{1, 2, 3, 20, 300} {
		var words []string
		n := 0
		var visit func(depth int)
		visit = func(depth int) {
			n++
			words = append(words, "+visit")
			for range children {
				if depth > 0 {
					visit(depth - 1)
				}
			}
			words = append(words, "-visit")
		}
		for range 30 {
			visit(1)
			if children < 20 {
				visit(6)
			}
		}
		_, spans := spansOf(t, strings.Join(words, " "))
		whole, unstarted, unfinished, _ := sums(spans, "visit")
		if whole+unfinished != n || unstarted != unfinished || unfinished > 2 {
			t.Errorf("%d children: %d of %d whole, %d unstarted, %d unfinished", children, whole, n, unstarted, unfinished)
		}
	}
}

// Whatever is said: each begin is a span's, each end is one's or of one that wasn't seen to begin, and spans of a depth don't overlap.
func TestEachBeginAndEndIsASpans(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var words []string
		begins, ends := 0, 0
		titles := 1 + rng.IntN(6)
		for range 5000 {
			title := string(rune('a' + rng.IntN(titles)))
			if rng.IntN(100) < 50+int(seed%3) {
				words, begins = append(words, "+"+title), begins+1
			} else {
				words, ends = append(words, "-"+title), ends+1
			}
		}
		f, spans := spansOf(t, strings.Join(words, " "))
		unstarted, unfinished := 0, 0
		last := map[int]uint64{}
		for _, s := range spans {
			if s.Unstarted {
				unstarted++
				continue // nobody knows since when
			}
			if s.Unfinished {
				unfinished++
			}
			if s.Begin < last[s.Depth] || s.End < s.Begin || s.End > f.LastTick() {
				t.Fatalf("seed %d: %s begins before %d", seed, inShort(s), last[s.Depth])
			}
			last[s.Depth] = s.End
		}
		if len(spans)-unstarted != begins || len(spans)-unfinished != ends {
			t.Errorf("seed %d: %d spans, %d unstarted, %d unfinished, of %d begins and %d ends", seed, len(spans), unstarted, unfinished, begins, ends)
		}
	}
}

// Where more is open than can be, the one that has waited longest gives way.
func TestOpenSpansAreBounded(t *testing.T) {
	const n = maxSpanDepth + 1000
	_, spans := spansOf(t, strings.Repeat("+a ", n)+strings.Repeat("-a ", n))
	whole, unstarted, unfinished, deepest := sums(spans, "a")
	if whole != maxSpanDepth || unfinished != 1000 || unstarted != 1000 || deepest != maxSpanDepth-1 {
		t.Errorf("%d whole, %d unfinished, %d unstarted, %d deep", whole, unfinished, unstarted, deepest)
	}
}
