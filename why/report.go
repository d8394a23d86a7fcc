package why

// Report is the answer for one or several calls. Its JSON keys are promised. Times are in nanoseconds, those of starts from the reel's first
// tick on.
type Report struct {
	// Calls are the calls that were asked for, what stands out most first.
	Calls []Answer `json:"calls"`
	// Groups are the calls, by their places in Calls, that are slow for the same cause.
	Groups [][]int `json:"groups,omitempty"`
	// Notes say what holds for all answers: what the reel lacks.
	Notes []string `json:"notes,omitempty"`
}

// Answer is why one call was slow.
type Answer struct {
	ID       string `json:"id"` // a CallID
	Function string `json:"function"`
	Module   string `json:"module"`
	TID      int    `json:"tid"`
	Thread   string `json:"thread,omitempty"`
	// Goroutine is the goroutine that made the call, 0 outside of Go programs.
	Goroutine  uint64 `json:"goroutine,omitempty"`
	StartNS    uint64 `json:"start_ns"`
	DurationNS uint64 `json:"duration_ns"`
	// Unfinished says that the call was open when the recording ended: so far it took DurationNS.
	Unfinished bool `json:"unfinished,omitempty"`
	// Others is how many other calls of the function there are, Peers with how many of them the call was compared.
	Others uint64 `json:"others"`
	Peers  int    `json:"peers"`
	// PeerP50NS and PeerP99NS are of all other calls.
	PeerP50NS uint64 `json:"peer_p50_ns"`
	PeerP99NS uint64 `json:"peer_p99_ns"`
	// ExcessNS is how much longer the call took than half of the others. ByKind and ByState each add up to it.
	ExcessNS int64   `json:"excess_ns"`
	ByKind   ByKind  `json:"by_kind"`
	ByState  ByState `json:"by_state"`
	// Causes are what the excess comes from, the largest first; none if the call isn't out of the ordinary.
	Causes []Cause `json:"causes"`
	// Natural are, where Causes has none, the largest parts of the excess: what there is more of, but by no more than scatters.
	Natural []Cause `json:"natural,omitempty"`
	// Peer is the ID of the call that is nearest to the middle of the peers, "" if there is none.
	Peer string `json:"peer,omitempty"`
	// Text is the answer in words, Notes what can't be known.
	Text  string   `json:"text"`
	Notes []string `json:"notes,omitempty"`
	// hint is what there is to say where no cause is given.
	hint string
	// hiccup is what may have been the machine's doing.
	hiccup string
	// slower is by what factor everything was slower, 0 if only some was.
	slower float64
}

// Kind says how a cause differs from what the peers do.
type Kind string

// The kinds of causes.
const (
	MoreCalls   Kind = "more-calls"   // the same is done more often
	SlowerCalls Kind = "slower-calls" // each call takes longer
	NewPath     Kind = "new-path"     // peers don't go there
	MissingPath Kind = "missing-path" // peers go there, and the call doesn't: time that it saved
	Self        Kind = "self"         // the own time of a function that also calls others
)

// ByKind splits an excess by kinds. The parts add up to it; each may be below 0.
type ByKind struct {
	MoreCallsNS   int64 `json:"more_calls_ns"`
	SlowerCallsNS int64 `json:"slower_calls_ns"`
	NewPathNS     int64 `json:"new_path_ns"`
	MissingPathNS int64 `json:"missing_path_ns"`
	SelfNS        int64 `json:"self_ns"`
}

// Sum is the excess.
func (k *ByKind) Sum() int64 {
	return k.MoreCallsNS + k.SlowerCallsNS + k.NewPathNS + k.MissingPathNS + k.SelfNS
}

// ByState splits an excess by what the thread did. The parts add up to it; each may be below 0.
type ByState struct {
	CPUNS     int64 `json:"cpu_ns"`
	ReadyNS   int64 `json:"ready_ns"`
	BlockedNS int64 `json:"blocked_ns"`
	UnknownNS int64 `json:"unknown_ns"`
}

// Sum is the excess.
func (s *ByState) Sum() int64 { return s.CPUNS + s.ReadyNS + s.BlockedNS + s.UnknownNS }

// Cause is one place that an excess comes from.
type Cause struct {
	// Path are the functions from below the call down to the place; empty for the call's own time, or for what is spread over it.
	Path []string `json:"path"`
	// ExcessNS is what the call spent there beyond its peers, Share the part of its whole excess.
	ExcessNS int64   `json:"excess_ns"`
	Share    float64 `json:"share"`
	Kind     Kind    `json:"kind"`
	// State is "cpu", "ready" or "blocked": in what most of it was spent; "unknown" where the reel doesn't say.
	State string `json:"state"`
	// Calls is how often the call went there, PeerCalls how often half of the peers did at most.
	Calls     uint64 `json:"calls"`
	PeerCalls uint64 `json:"peer_calls"`
	// SpentNS is what the call spent there in all, PeerSpentNS what its peers did.
	SpentNS     uint64 `json:"spent_ns"`
	PeerSpentNS uint64 `json:"peer_spent_ns"`
	// WaitsFor is who was waited for, nil if nobody is known: the first of the chain that didn't wait for the same itself.
	WaitsFor *Waiter `json:"waits_for,omitempty"`
	// Chain are the threads that were waited for: whoever ended the wait, then whoever ended the wait of that one, and so on.
	Chain []Waiter `json:"chain,omitempty"`
	// DistinguishedBy are values that set slow calls apart from others.
	DistinguishedBy []Difference `json:"distinguished_by,omitempty"`
	// FromNS and ToNS are the longest stretch that it was spent in.
	FromNS uint64 `json:"from_ns"`
	ToNS   uint64 `json:"to_ns"`
	// Text is the cause in words.
	Text string `json:"text"`
	// waits says in words what was waited in and for.
	waits string
	// faults says so of page faults, where they are more than usual.
	faults string
}

// Waiter is what a thread did while it was waited for.
type Waiter struct {
	// TID and Thread are 0 and "" of what is no thread of the reel: the kernel, another process.
	TID       int    `json:"tid"`
	Thread    string `json:"thread,omitempty"`
	Goroutine uint64 `json:"goroutine,omitempty"`
	// Function is the one that it was in for most of the time, Path the functions from its thread's outermost down to that.
	Function string   `json:"function"`
	Path     []string `json:"path"`
	// State is what it did there for the most part.
	State string `json:"state,omitempty"`
	// NS is for how long.
	NS uint64 `json:"ns"`
	// Object is what the wait was on, if that is known: a file, a socket, a lock's address.
	Object string `json:"object,omitempty"`
	// Text says what was waited for where it is no thread, or besides.
	Text string `json:"text,omitempty"`
	// same says that it waited for the same.
	same bool
}

// Difference is a value that slow calls have and others don't.
type Difference struct {
	// What is whose value: "argument key", "thread", "result".
	What  string `json:"what"`
	Value string `json:"value"`
	// Slow is how many of the slow calls have it, Fast how many of the others; SlowOf and FastOf are of how many.
	Slow   int `json:"slow"`
	Fast   int `json:"fast"`
	SlowOf int `json:"slow_of"`
	FastOf int `json:"fast_of"`
	// P is how likely so uneven a share is by chance, times how many values were tried.
	P float64 `json:"p"`
}
