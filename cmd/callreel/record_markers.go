package main

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
)

// markerFlags are the flags of record that are about markers.
type markerFlags struct{ markers, pairs []string }

func (f *markerFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.markers, "markers", nil, "record the program's own markers: the `SPEC` 'postgresql:*' or 'p:line(arg1:s)' (repeatable)")
	fl.StringArrayVar(&f.pairs, "pair", nil, "markers that begin and end a span, as `BEGIN=END`, besides those that names tell (repeatable)")
}

// wrong says what is wrong with them, "" if nothing is.
func (f *markerFlags) wrong(clock string) string {
	switch {
	case len(f.pairs) > 0 && len(f.markers) == 0:
		return "--pair goes with --markers"
	case len(f.markers) > 0 && clock != "full":
		return "--markers needs the time of each: --clock full"
	}
	return ""
}

// markersAlone says that only markers and imports are recorded: nothing on the command line is about functions.
func (f *recordFlags) markersAlone(fl *pflag.FlagSet) bool {
	marks := len(f.markers.markers)+len(f.imports.imports) > 0
	for _, when := range f.armed.when {
		t, err := recorder.ParseTrigger(when)
		if err != nil || t.Marker == "" && t.Span == "" {
			return false // that a main thread stalls says little without calls
		}
		marks = true
	}
	if !marks {
		return false
	}
	filters := []string{"depth", "min", "every"} // of calls, which imports have, too
	for _, name := range []string{"module", "function", "exclude", "min-size", "args", "ret", "if", "inside", "depth", "min", "every"} {
		if fl.Changed(name) && !(len(f.imports.imports) > 0 && slices.Contains(filters, name)) {
			return false
		}
	}
	return true
}

// markersSummary is what became of the markers that were asked for, by their sites; the keys are promised.
type markersSummary struct {
	Seen     int            `json:"seen"`
	Recorded int            `json:"recorded"`
	Refused  map[string]int `json:"refused"`
}

func (f *markerFlags) summarize(r *recorder.Result) *markersSummary {
	if len(f.markers) == 0 {
		return nil
	}
	s := &markersSummary{r.Markers.Seen, r.Markers.Recorded, r.Markers.Refused}
	if s.Refused == nil {
		s.Refused = map[string]int{}
	}
	return s
}

// counted says how many marks there are, sites how many sites of markers were recorded.
func (f *markerFlags) counted(r *recorder.Result) string {
	if len(f.markers) == 0 {
		return ""
	}
	return " and " + things(r.Marks, "mark")
}

func (f *markerFlags) sites(r *recorder.Result) string {
	if len(f.markers) == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of %s recorded", count(uint64(r.Markers.Recorded)), things(uint64(r.Markers.Seen), "marker site"))
}
