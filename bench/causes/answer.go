package causes

import (
	"encoding/json"
	"fmt"
	"time"
)

// An Answer is the part of `callreel why --json` that is judged.
type Answer struct {
	Calls []Call `json:"calls"`
}

// A Call is a slow one, and why it was.
type Call struct {
	Function   string  `json:"function"`
	TID        int     `json:"tid"`
	DurationNS int64   `json:"duration_ns"`
	Peers      int     `json:"peers"`
	PeerP50NS  int64   `json:"peer_p50_ns"`
	Causes     []Cause `json:"causes"`
	Natural    []Cause `json:"natural"` // where nothing is claimed: what it took longer for
}

// A Cause is one claim, the first of a call being the weightiest.
type Cause struct {
	Path     []string `json:"path"`
	ExcessNS int64    `json:"excess_ns"`
	Share    float64  `json:"share"`
	Kind     string   `json:"kind"`
	State    string   `json:"state"`
	WaitsFor *Holder  `json:"waits_for"`
	Text     string   `json:"text"`
}

// A Holder is who was waited for.
type Holder struct {
	TID      int    `json:"tid"`
	Function string `json:"function"`
	Path     names  `json:"path"`
}

// names is a list of functions, which may also be one.
type names []string

func (n *names) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*n = names{""}
		return json.Unmarshal(data, &(*n)[0])
	}
	return json.Unmarshal(data, (*[]string)(n))
}

// ReadAnswer reads the JSON of `callreel why`.
func ReadAnswer(data []byte) (a Answer, err error) {
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("what why said: %w", err)
	}
	return a, nil
}

// atLeast returns the calls that took that long.
func (a *Answer) atLeast(d time.Duration) []Call {
	var calls []Call
	for _, c := range a.Calls {
		if c.DurationNS >= d.Nanoseconds() {
			calls = append(calls, c)
		}
	}
	return calls
}
