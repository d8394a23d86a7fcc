package viewer

import "github.com/callreel/callreel/reel"

// FunctionStates is what `callreel report --json` has besides of a function where the states of threads are known; the keys are promised.
// Times are in nanoseconds.
type FunctionStates struct {
	SelfCPUNS      uint64 `json:"self_cpu_ns"`
	SelfReadyNS    uint64 `json:"self_ready_ns"`
	SelfBlockedNS  uint64 `json:"self_blocked_ns"`
	TotalCPUNS     uint64 `json:"total_cpu_ns"`
	TotalReadyNS   uint64 `json:"total_ready_ns"`
	TotalBlockedNS uint64 `json:"total_blocked_ns"`
	// What isn't known of self and total.
	SelfUnknownNS  uint64 `json:"self_unknown_ns,omitempty"`
	TotalUnknownNS uint64 `json:"total_unknown_ns,omitempty"`
}

// StatesOf is that of a function in a summary that has states.
func StatesOf(f *reel.FunctionSummary) *FunctionStates {
	self, total := f.SelfStates, f.TotalStates
	return &FunctionStates{self.Running, self.Ready, self.Blocked, total.Running, total.Ready, total.Blocked,
		f.Self - min(f.Self, self.Known()), f.Total - min(f.Total, total.Known())}
}
