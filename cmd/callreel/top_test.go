package main

import (
	"bufio"
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/live"
	"github.com/callreel/callreel/reel"
)

// topJSON is an object of top --json.
type topJSON struct {
	Functions []topFunctionJSON `json:"functions"`
	Threads   []topThreadJSON   `json:"threads"`
	PID       int               `json:"pid"`
	Elapsed   float64           `json:"elapsed_ms"`
	Calls     uint64            `json:"calls"`
	Dropped   uint64            `json:"dropped"`
	LostExits uint64            `json:"lost_exits"`
	Ignored   uint64            `json:"ignored"`
	Budget    *topBudgetJSON    `json:"budget"`
	Off       []topOffJSON      `json:"off"`
}

// hostileSnapshot has a name wherever there may be one.
func hostileSnapshot(name string) *live.Snapshot {
	return &live.Snapshot{
		Elapsed: time.Second, Calls: 1, Dropped: 2, LostExits: 3, Ignored: 4,
		Functions: []live.Function{{ID: 1, Name: name, Short: name, Module: name, Calls: 1, PerSecond: 1, Open: 1, Self: 1 << 63, Whole: true, P99: 1 << 62, Max: 1 << 63}, {Name: name}},
		Threads:   []live.Thread{{TID: 1, Name: name, In: name, Depth: 1, For: 1 << 63, Dropped: 1}, {Name: name, Ended: true}},
		Budget:    &reel.Budget{Wanted: 0.02},
		Off:       []live.OffFunction{{Name: name, Short: name, Module: name, PerSecond: math.MaxFloat64, For: 1<<63 - 1}, {Name: name, For: -1}},
	}
}

func TestNamesOnThePageAreCutWhereTheyTellLeast(t *testing.T) {
	f := live.Function{Module: "libstdc++.so.6.0.30", Name: "operator new(unsigned long)", Short: "operator new"}
	for most, want := range map[int]string{
		47: "libstdc++.so.6.0.30!operator new(unsigned long)",
		40: "libstdc++.s…!operator new(unsigned long)",
		31: "libstdc++.so.6.0.…!operator new",
		10: "lib…!operator new",
	} {
		if got := functionName(&f, most); got != want {
			t.Errorf("%d characters: %q, want %q", most, got, want)
		}
	}
}

// budgeted is a moment in which two functions are off, of which one had calls before.
func budgeted() *live.Snapshot {
	return &live.Snapshot{
		Elapsed: time.Second, Calls: 3,
		Functions: []live.Function{{ID: 1, Name: "serve", Module: "server", Calls: 2, PerSecond: 2}, {ID: 2, Name: "parse", Module: "server", Calls: 1, PerSecond: 1, Off: true}},
		Budget:    &reel.Budget{Wanted: 0.02, Measured: 0.017, Uncertainty: 0.001},
		Off:       []live.OffFunction{{ID: 3, Name: "hash", Module: "server", PerSecond: 1_204_118, For: 4 * time.Second}, {ID: 2, Name: "parse", Module: "server", PerSecond: 900, For: time.Second}},
	}
}

func TestThePageSaysWhatIsOff(t *testing.T) {
	p := &topPage{f: &topFlags{pid: 1, budget: budgetFlags{share: 0.02}}, sort: "calls", snap: budgeted()}
	text := strings.Join(p.lines(120, 12), "\n")
	for _, want := range []string{"budget: 1.7 % of 2 %; 2 functions off", "server!parse  (off)", "o off"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p.press('o')
	text = strings.Join(p.lines(120, 12), "\n")
	for _, want := range []string{"calls/s then", "1,204,118    4.000 s  server!hash", "o functions"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "serve\n") {
		t.Errorf("a function that is on:\n%s", text)
	}
	p.filter = "PARS"
	if text = strings.Join(p.lines(120, 12), "\n"); strings.Contains(text, "hash") || !strings.Contains(text, "server!parse") {
		t.Errorf("filtered:\n%s", text)
	}
	p.press('t')
	if !p.threads || p.off {
		t.Error("t doesn't lead to the threads")
	}
	p = &topPage{f: &topFlags{pid: 1}, sort: "calls"}
	if p.press('o'); p.off || strings.Contains(p.help(), "o off") {
		t.Error("without a budget nothing is off")
	}
}

func TestTablesAndObjectsSayWhatIsOff(t *testing.T) {
	var out bytes.Buffer
	f := &topFlags{pid: 1, sort: "calls", once: true, off: true, budget: budgetFlags{share: 0.02}}
	realtest.Must(t, f.write(&out, budgeted(), nil))
	for _, want := range []string{"server!parse  (off)\n", "1,204,118    4.000 s  server!hash\n", "\nbudget: 1.7 % of the processor time, of 2 % wanted; 2 functions off\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	f.json = true
	realtest.Must(t, f.write(&out, budgeted(), nil))
	o := realtest.DecodeExactly[topJSON](t, out.String())
	if b := o.Budget; b == nil || b.Wanted != 0.02 || b.Measured == nil || *b.Measured != 0.017 || b.CallsRecorded != nil || b.FunctionsOff != 2 {
		t.Errorf("%+v", b)
	}
	if len(o.Off) != 2 || o.Off[0] != (topOffJSON{"hash", "server", 1_204_118, 4e9}) || o.Functions[0].Off || !o.Functions[1].Off {
		t.Errorf("%+v; %+v", o.Off, o.Functions)
	}
	out.Reset()
	f.off, f.json = false, false
	realtest.Must(t, f.write(&out, budgeted(), nil))
	if strings.Contains(out.String(), "hash") {
		t.Errorf("it is listed, though that isn't asked for:\n%s", out.String())
	}
	for want, b := range map[string]reel.Budget{
		"budget: not measured yet, 2 % wanted; 0 functions off":             {Wanted: 0.02},
		"budget: 0 % of the processor time, of 2 % wanted; 0 functions off": {Wanted: 0.02, Measured: -0.001},
	} {
		if got := topBudget(&live.Snapshot{Budget: &b}, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w := bufio.NewWriter(&out)
	out.Reset()
	writeOffTable(w, budgeted(), 1)
	realtest.Must(t, w.Flush())
	if !strings.HasSuffix(out.String(), "and 1 other function that is off\n") {
		t.Errorf("%s", out.String())
	}
}
