package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
)

// budgetFlags say what recording may cost.
type budgetFlags struct {
	share    percent
	keep     []string
	countOff bool
}

func (f *budgetFlags) add(fl *pflag.FlagSet) {
	fl.Var(&f.share, "budget", "what recording may cost, a `SHARE` of the processor time that the process uses, such as 2%")
	fl.StringArrayVar(&f.keep, "keep-function", nil, "with --budget: record the functions that this `GLOB` matches whatever they cost (repeatable)")
	fl.BoolVar(&f.countOff, "count-off", false, "with --budget: estimate by samples how often functions are called that aren't recorded")
}

func (f *budgetFlags) wrong() string {
	if f.share == 0 && (len(f.keep) > 0 || f.countOff) {
		return "--keep-function and --count-off go with --budget"
	}
	return ""
}

// budget is what the flags say. Recordings with a budget nap, see allowNaps.
func (f *budgetFlags) budget() recorder.Budget {
	return recorder.Budget{Share: float64(f.share), Keep: f.keep, CountOff: f.countOff, Naps: f.share > 0}
}

// allowNaps gives each of so many recordings with a budget a processor of Go's scheduler to keep while it naps.
func (f *budgetFlags) allowNaps(recordings int) {
	if f.share > 0 {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + recordings)
	}
}

// percent is a share, given as 2% or 0.5%.
type percent float64

func (p *percent) Set(text string) error {
	number, is := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case !is || err != nil:
		return errors.New("give a percentage, such as 2%")
	case !(v >= 100*recorder.LeastBudget && v <= 100):
		return fmt.Errorf("give %g%% to 100%%", 100*recorder.LeastBudget)
	}
	*p = percent(v / 100)
	return nil
}

func (p *percent) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(*p), 'g', 4, 64) + "%"
}

func (p *percent) Type() string { return "share" }

// budgetSummary is how a budget was kept; the keys are promised.
type budgetSummary struct {
	Wanted        float64 `json:"wanted"`
	Measured      float64 `json:"measured"`
	Uncertainty   float64 `json:"uncertainty,omitempty"` // standard error of Measured; missing where what a call costs isn't measured
	NSPerCall     float64 `json:"ns_per_call"`
	FunctionsOff  int     `json:"functions_off"`
	SitesRemoved  int     `json:"sites_removed"`
	CallsShare    float64 `json:"calls_recorded_share"`
	TimeShare     float64 `json:"time_recorded_share"`
	CallsSeen     uint64  `json:"calls_seen"`
	Samples       int     `json:"samples"`
	Stops         int     `json:"stops"`
	StopMS        float64 `json:"stop_ms"`
	LongestStopMS float64 `json:"longest_stop_ms"`
}

func budgetOf(b *recorder.BudgetKept) *budgetSummary {
	if b == nil {
		return nil
	}
	return &budgetSummary{b.Wanted, b.Measured, b.Sure, b.Price, b.Functions, b.Sites, b.CallsShare, b.TimeShare, b.Seen, b.Samples, b.Stops,
		milliseconds(b.Stopped), milliseconds(b.LongestStop)}
}

// budgetText is what the summary says of it, a line; empty without one.
func budgetText(r *recorder.Result) string {
	b := r.Budget
	if b == nil {
		return ""
	}
	text := fmt.Sprintf("budget: %s of the processor time, of %s wanted, with %s of the calls and %s of the time; ",
		percentText(b.Measured), percentText(b.Wanted), percentText(b.CallsShare), percentText(b.TimeShare))
	text += things(uint64(b.Functions), "function") + " off"
	if b.Seen > 0 {
		text += ", of which " + things(b.Seen, "slow call") + " were seen"
	}
	return text + "\n"
}
