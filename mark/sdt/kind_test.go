package sdt

import (
	"strings"
	"testing"
)

// meant is what a program with these markers, named as in its notes, means by each.
func meant(t *testing.T, provider, names string, pairs ...string) map[string]Meaning {
	t.Helper()
	var notes []Note
	for _, n := range strings.Fields(names) {
		notes = append(notes, Note{Provider: provider, Name: n})
	}
	var list []Pair
	for _, text := range pairs {
		p, err := ParsePair(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	all := map[string]Meaning{}
	for i, m := range Meanings(notes, list) {
		all[notes[i].Name] = m
	}
	return all
}

func TestPairsAreKnownByTheirNames(t *testing.T) {
	all := meant(t, "p", "query__start query__done f__entry f__return gc-begin gc-end lone__start other a__begin a__end tx__start tx__commit tx__abort")
	for name, want := range map[string]struct {
		kind  Kind
		title string
	}{
		"query__start": {Begin, "query"}, "query__done": {End, "query"}, "f__entry": {Begin, "f"}, "f__return": {End, "f"},
		"gc-begin": {Begin, "gc"}, "gc-end": {End, "gc"}, "a__begin": {Begin, "a"}, "a__end": {End, "a"},
		"tx__start": {Begin, "tx"}, "tx__commit": {End, "tx"}, "tx__abort": {End, "tx"},
		"lone__start": {Instant, "lone__start"}, "other": {Instant, "other"},
	} {
		m := all[name]
		if m.Kind != want.kind || m.Title != want.title || want.kind != Instant && m.Pair != want.title {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestPairsThatAreGivenCountFirst(t *testing.T) {
	all := meant(t, "pg", "transaction__start transaction__commit transaction__abort lock_get lock_put x__start x__done",
		"transaction__start=transaction__commit", "pg:*_get=pg:*_put", "other:x__start=other:x__done")
	for name, want := range map[string]string{"transaction__start": "begin transaction", "transaction__commit": "end transaction",
		"transaction__abort": "end transaction", "lock_get": "begin lock", "lock_put": "end lock", "x__start": "begin x"} {
		if m := all[name]; m.Kind.String()+" "+m.Title != want {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, bad := range []string{"a", "a=", "=b", "a=a", "a*=b", "*a*=*b*", "a=b=c"} {
		if _, err := ParsePair(bad); err == nil {
			t.Errorf("%q is a pair", bad)
		}
	}
}

func TestNamesOfTheHeaderSayWhatTheyAre(t *testing.T) {
	all := meant(t, Provider, "begin__frame end end__frame async_begin__load async_step__load async_end__load flow_out__job flow_in__job "+
		"counter__queue counterf__load instant__tick thread_name pause resume begin_s counter_s__any async_begin_s odd "+
		"begin_z13__frame begin_s_z2 async_end_z2__load begin_z__frame begin_z0__frame")
	for name, want := range map[string]Meaning{
		"begin__frame":       {Begin, "frame", "frame", -1, -1, -1, false, 0},
		"end":                {End, "", "", -1, -1, -1, false, 0},
		"end__frame":         {End, "frame", "frame", -1, -1, -1, false, 0},
		"async_begin__load":  {AsyncBegin, "load", "load", -1, 0, -1, false, 0},
		"async_step__load":   {AsyncStep, "load", "load", -1, 0, -1, false, 0},
		"async_end__load":    {AsyncEnd, "load", "load", -1, 0, -1, false, 0},
		"flow_out__job":      {FlowOut, "job", "job", -1, 0, -1, false, 0},
		"flow_in__job":       {FlowIn, "job", "job", -1, 0, -1, false, 0},
		"counter__queue":     {Counter, "queue", "", -1, -1, 0, false, 0},
		"counterf__load":     {Counter, "load", "", -1, -1, 0, true, 0},
		"instant__tick":      {Instant, "tick", "", -1, -1, -1, false, 0},
		"thread_name":        {ThreadName, "", "", -1, -1, 0, false, 0},
		"pause":              {Pause, "", "", -1, -1, -1, false, 0},
		"resume":             {Resume, "", "", -1, -1, -1, false, 0},
		"begin_s":            {Begin, "", "", 0, -1, -1, false, 0},
		"counter_s__any":     {Counter, "", "", 0, -1, 1, false, 0},
		"async_begin_s":      {AsyncBegin, "", "", 0, 1, -1, false, 0},
		"begin_z13__frame":   {Begin, "frame", "frame", -1, -1, -1, false, 0b101},
		"begin_s_z2":         {Begin, "", "", 0, -1, -1, false, 0b10},
		"async_end_z2__load": {AsyncEnd, "load", "load", -1, 0, -1, false, 0b10},
		"begin_z__frame":     {Instant, "begin_z__frame", "", -1, -1, -1, false, 0},
		"begin_z0__frame":    {Instant, "begin_z0__frame", "", -1, -1, -1, false, 0},
		"odd":                {Instant, "odd", "", -1, -1, -1, false, 0},
	} {
		if got := all[name]; got != want {
			t.Errorf("%s: %+v, not %+v", name, got, want)
		}
	}
}
