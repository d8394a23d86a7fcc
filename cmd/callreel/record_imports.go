package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
)

// importFlags are the flags of record that are about imports.
type importFlags struct{ imports []string }

func (f *importFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.imports, "imports", nil, "record calls by callers' GOT slots: the `SPEC` 'LIB:FUNC', two globs (repeatable)")
}

// importsSummary is what became of the imports that were asked for, by slots; the keys are promised.
type importsSummary struct {
	Seen     int            `json:"seen"`
	Recorded int            `json:"recorded"`
	Refused  map[string]int `json:"refused"`
	Calls    int            `json:"call_sites"`
	Ends     int            `json:"ends_seen"`
}

func (f *importFlags) summarize(r *recorder.Result) *importsSummary {
	if len(f.imports) == 0 {
		return nil
	}
	m := &r.Imports
	s := &importsSummary{m.Seen, m.Recorded, m.Refused, m.Calls, m.Ends}
	if s.Refused == nil {
		s.Refused = map[string]int{}
	}
	return s
}

// slots says how many slots are recorded.
func (f *importFlags) slots(r *recorder.Result) string {
	if len(f.imports) == 0 {
		return ""
	}
	m := &r.Imports
	return fmt.Sprintf(", %s of %s of imports (the end is seen at %s of %s)", count(uint64(m.Recorded)), things(uint64(m.Seen), "slot"),
		count(uint64(m.Ends)), things(uint64(m.Calls), "calling place"))
}
