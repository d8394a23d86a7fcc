package reel

import "fmt"

// Version is the format version that this package writes. Readers accept it
// and older ones; a newer one is refused.
const Version = 1

// ClockMode says which events carry a time.
type ClockMode uint8

const (
	// ClockFull: entries and exits carry a time.
	ClockFull ClockMode = iota
	// ClockExit: exits carry a time, entries have Time 0. A call's start is
	// then known only to lie after the event before it in the same thread.
	ClockExit
	// ClockNone: no event carries a time; only the order is known.
	ClockNone
)

// String returns the mode as the flag --clock spells it.
func (m ClockMode) String() string {
	switch m {
	case ClockFull:
		return "full"
	case ClockExit:
		return "exit"
	case ClockNone:
		return "none"
	}
	return fmt.Sprintf("clock mode %d", uint8(m))
}

// ParseClockMode is the inverse of [ClockMode.String].
func ParseClockMode(s string) (ClockMode, error) {
	for _, m := range []ClockMode{ClockFull, ClockExit, ClockNone} {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("reel: unknown clock mode %q: use full, exit or none", s)
}

// Clock relates ticks to wall time.
type Clock struct {
	// Mode says which events carry a time.
	Mode ClockMode
	// TicksPerSecond is the nominal rate; 0 means 1e9 (ticks are nanoseconds).
	// Clock pairs, where there are two or more, override it between them.
	TicksPerSecond uint64
	// BaseTick and BaseUnixNS are one instant, read together when the
	// recording started: ticks, and nanoseconds since 1970-01-01 UTC.
	BaseTick   uint64
	BaseUnixNS int64
}

// Header describes a recording as a whole. It is written once, by [Create].
type Header struct {
	// Version is the format version of the file. Create ignores it and writes
	// [Version].
	Version uint32
	// StartUnixNS is when the recording began: nanoseconds since 1970 UTC.
	StartUnixNS int64
	Clock       Clock
	// PID is the process that was recorded.
	PID int
	// Command is its command line; Exe the path of its executable.
	Command []string
	Exe     string
	// Host is the machine's name, Arch its architecture as Go spells it.
	Host string
	Arch string
	// Goroutines says that the threads' events are those of goroutines, see [File.ReadGoroutines].
	Goroutines bool
	// Tool names the writer and its version, for example "callreel 0.1".
	Tool string
}

// Field tags of the header chunk. A reader skips tags it does not know, so
// fields may be added without a new version; none is ever given a new meaning.
const (
	tagStart = iota + 1
	tagClockMode
	tagTicksPerSecond
	tagBaseTick
	tagBaseUnixNS
	tagPID
	tagArg
	tagExe
	tagHost
	tagArch
	tagTool
	tagGoroutines
)

func appendHeader(b []byte, h *Header) []byte {
	b = appendUvarint(b, Version)
	b = appendTagged(b, tagStart, uint64(h.StartUnixNS))
	b = appendTagged(b, tagClockMode, uint64(h.Clock.Mode))
	b = appendTagged(b, tagTicksPerSecond, h.Clock.TicksPerSecond)
	b = appendTagged(b, tagBaseTick, h.Clock.BaseTick)
	b = appendTagged(b, tagBaseUnixNS, uint64(h.Clock.BaseUnixNS))
	b = appendTagged(b, tagPID, uint64(h.PID))
	for _, a := range h.Command {
		b = appendTaggedString(b, tagArg, a)
	}
	b = appendTaggedString(b, tagExe, h.Exe)
	b = appendTaggedString(b, tagHost, h.Host)
	b = appendTaggedString(b, tagArch, h.Arch)
	if h.Goroutines {
		b = appendTagged(b, tagGoroutines, 1)
	}
	return appendTaggedString(b, tagTool, h.Tool)
}

func parseHeader(payload []byte) (Header, error) {
	d := fields{b: payload}
	h := Header{Version: uint32(d.uvarint())}
	if d.err == nil && (h.Version == 0 || h.Version > Version) {
		return h, fmt.Errorf("format version %d: this callreel reads versions up to %d", h.Version, Version)
	}
	for d.more() {
		tag, v := d.tagged()
		switch tag {
		case tagStart:
			h.StartUnixNS = int64(v.number())
		case tagClockMode:
			h.Clock.Mode = ClockMode(v.number())
		case tagTicksPerSecond:
			h.Clock.TicksPerSecond = v.number()
		case tagBaseTick:
			h.Clock.BaseTick = v.number()
		case tagBaseUnixNS:
			h.Clock.BaseUnixNS = int64(v.number())
		case tagPID:
			h.PID = int(v.number())
		case tagArg:
			h.Command = append(h.Command, string(v))
		case tagExe:
			h.Exe = string(v)
		case tagHost:
			h.Host = string(v)
		case tagArch:
			h.Arch = string(v)
		case tagGoroutines:
			h.Goroutines = v.number() != 0
		case tagTool:
			h.Tool = string(v)
		}
	}
	if d.err == nil && h.Clock.Mode > ClockNone {
		return h, fmt.Errorf("unknown clock mode %d", h.Clock.Mode)
	}
	return h, d.err
}
