package guest

import "time"

// Names of what the guest is given: the serial numbers of its disks, its port to the host, and what is in its payload.
const (
	DiskRoot    = "root"    // Debian's userland
	DiskCache   = "cache"   // what is kept between runs
	DiskPayload = "payload" // a tar file, the first entry of which is JobsFile
	Port        = "callreel.events"
	JobsFile    = "jobs.json"
	ModulesDir  = "modules" // in the initial file system; they are loaded in the order of their names
)

// A Job is a program to be run in the guest, as root.
type Job struct {
	Name    string        `json:"name"`
	Folder  string        `json:"folder"` // where it is run
	Args    []string      `json:"args"`   // the first is its path
	Env     []string      `json:"env"`    // besides PATH and HOME
	Timeout time.Duration `json:"timeout"`
}

// An Event is what the guest tells: a line of JSON.
type Event struct {
	Kind    Kind    `json:"kind"`
	Job     int     `json:"job"`              // index, of all kinds but Up and Failed
	Data    []byte  `json:"data,omitempty"`   // Output: what the job has written; Failed: why the guest gives up
	Status  int     `json:"status,omitempty"` // Ended: the exit status, 128 and the signal if that ended it, 124 if its time was over
	Seconds float64 `json:"seconds"`          // Up: since the kernel began; Ended: the job's
}

// A Kind is a kind of event.
type Kind string

// The kinds of events.
const (
	Up      Kind = "up" // the jobs begin
	Output  Kind = "output"
	Ended   Kind = "ended"
	Failed  Kind = "failed"
	AllDone Kind = "done"
)

// StatusTimeout is the status of a job whose time was over.
const StatusTimeout = 124
