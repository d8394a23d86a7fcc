package realtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Summary is what `callreel record --json` prints at the end.
type Summary struct {
	Functions struct {
		Seen     int            `json:"seen"`
		Traced   int            `json:"traced"`
		Compiled int            `json:"compiled"`
		Refused  map[string]int `json:"refused"` // by reason
	} `json:"functions"`
	Calls        int64   `json:"calls"`
	Events       int64   `json:"events"`
	Dropped      int64   `json:"dropped"`
	Bytes        int64   `json:"bytes"`
	Threads      int     `json:"threads"`
	AttachStopMS float64 `json:"attach_stop_ms"`
	DetachStopMS float64 `json:"detach_stop_ms"`
	TextVerified bool    `json:"text_verified"`
}

// FunctionList is what `callreel functions --json` prints.
type FunctionList struct {
	Functions []struct {
		Name    string `json:"name"`
		Module  string `json:"module"`
		Address string `json:"address"` // "0x…"
		Size    int64  `json:"size"`    // bytes
		Tier    string `json:"tier"`    // empty when refused
		Reason  string `json:"reason"`
	} `json:"functions"`
}

// Report is what `callreel report --json` prints. Times are nanoseconds.
type Report struct {
	Functions []struct {
		Name    string `json:"name"`
		Module  string `json:"module"`
		Calls   int64  `json:"calls"`
		TotalNS int64  `json:"total_ns"`
		SelfNS  int64  `json:"self_ns"`
		P50NS   int64  `json:"p50_ns"`
		P99NS   int64  `json:"p99_ns"`
		MaxNS   int64  `json:"max_ns"`
	} `json:"functions"`
	Threads []ReportThread  `json:"threads"`
	Dropped int64           `json:"dropped"`
	Damaged json.RawMessage `json:"damaged"` // absent when the reel is whole
}

// ReportThread is a thread of a Report.
type ReportThread struct {
	TID     int    `json:"tid"`
	Name    string `json:"name"`
	Calls   int64  `json:"calls"`
	Dropped int64  `json:"dropped"`
}

// Callers leaves out the threads of which there is nothing but what the scheduler did with them.
func (r *Report) Callers() []ReportThread {
	return slices.DeleteFunc(slices.Clone(r.Threads), func(t ReportThread) bool { return t.Calls == 0 && t.Dropped == 0 })
}

// Decode reads one JSON object from what callreel printed.
func Decode[T any](t testing.TB, stdout string) T {
	t.Helper()
	var v T
	if err := json.NewDecoder(strings.NewReader(stdout)).Decode(&v); err != nil {
		t.Fatalf("realtest: decode %T: %v in\n%.2000s", v, err, stdout)
	}
	return v
}

// DecodeExactly reads one JSON value with exactly the keys that T knows, and nothing behind it.
func DecodeExactly[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("realtest: decode %T: %v in\n%.2000s", v, err, text)
	}
	if d.More() {
		t.Fatalf("realtest: more than one JSON value in\n%.2000s", text)
	}
	return v
}

// Calls returns the calls of the function named name, over all modules.
func (r Report) Calls(name string) int64 {
	var n int64
	for _, f := range r.Functions {
		if f.Name == name {
			n += f.Calls
		}
	}
	return n
}
