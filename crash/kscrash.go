package crash

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/callreel/callreel/demangle"
)

// KSCrash is the JSON of KSCrash: standard, minimal and user reports, and what a crash in its own
// handler leaves.
const KSCrash Format = "kscrash"

type ksReport struct {
	Report loose[struct {
		Type    words `json:"type"`
		Process words `json:"process_name"`
		Time    words `json:"timestamp"`
	}] `json:"report"`
	System loose[struct {
		Name    words  `json:"system_name"`
		Version words  `json:"system_version"`
		Build   words  `json:"os_version"`
		CPU     words  `json:"cpu_arch"`
		PID     number `json:"process_id"`
		Process words  `json:"process_name"`
		Path    words  `json:"CFBundleExecutablePath"`
	}] `json:"system"`
	Images  loose[[]ksImage] `json:"binary_images"`
	Crash   loose[ksCrash]   `json:"crash"`
	Recrash json.RawMessage  `json:"recrash_report"`
}

type ksImage struct {
	Addr    number `json:"image_addr"`
	Size    number `json:"image_size"`
	Name    words  `json:"name"`
	UUID    words  `json:"uuid"`
	CPUType number `json:"cpu_type"`
	Subtype number `json:"cpu_subtype"`
}

type ksCrash struct {
	Diagnosis words             `json:"diagnosis"`
	Error     loose[ksError]    `json:"error"`
	Threads   loose[[]ksThread] `json:"threads"`
	Crashed   loose[*ksThread]  `json:"crashed_thread"`
}

type ksError struct {
	Type    words   `json:"type"`
	Address *number `json:"address"`
	Reason  words   `json:"reason"`
	Mach    loose[struct {
		Exception words `json:"exception_name"`
		Code      words `json:"code_name"`
	}] `json:"mach"`
	Signal loose[struct {
		Name words `json:"name"`
		Code words `json:"code_name"`
	}] `json:"signal"`
	NSException loose[struct {
		Name   words `json:"name"`
		Reason words `json:"reason"`
	}] `json:"nsexception"`
	CPP loose[struct {
		Name words `json:"name"`
	}] `json:"cpp_exception"`
	User loose[struct {
		Name      words           `json:"name"`
		Language  words           `json:"language"`
		Line      words           `json:"line_of_code"`
		Backtrace json.RawMessage `json:"backtrace"`
	}] `json:"user_reported"`
}

type ksThread struct {
	Index     number `json:"index"`
	Name      words  `json:"name"`
	Queue     words  `json:"dispatch_queue"`
	State     words  `json:"state"`
	Crashed   bool   `json:"crashed"`
	Current   bool   `json:"current_thread"`
	Backtrace loose[struct {
		Contents []ksFrame `json:"contents"`
		Skipped  number    `json:"skipped"`
	}] `json:"backtrace"`
	Registers loose[struct {
		Basic map[string]number `json:"basic"`
	}] `json:"registers"`
}

type ksFrame struct {
	Addr   number `json:"instruction_addr"`
	Symbol words  `json:"symbol_name"`
	Start  number `json:"symbol_addr"`
	Object words  `json:"object_name"`
	Load   number `json:"object_addr"`
}

// isKSCrash says whether JSON is that of a report of KSCrash.
func isKSCrash(text string) bool {
	return strings.Contains(text, `"crash"`) && strings.Contains(text, `"report"`) || strings.Contains(text, `"recrash_report"`)
}

// readKSCrash reads a report.
func readKSCrash(name, text string) (*Report, error) {
	var j ksReport
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&j); err != nil {
		return nil, fmt.Errorf("crash: %s: %w: %w", name, ErrDamaged, err)
	}
	r := &Report{Format: KSCrash, Time: unixTime(string(j.Report.V.Time))}
	parts := []*ksReport{&j}
	// A crash while a report was written leaves two: of the crash that was reported, and of that
	// in the handler. Which of them holds the other depends on KSCrash's version.
	if inner := recrash(j.Recrash); inner != nil {
		if j.Report.V.Type == "minimal" && inner.Report.V.Type != "minimal" {
			parts = []*ksReport{inner, &j}
		} else {
			parts = append(parts, inner)
		}
	}
	for k, p := range parts {
		p.addTo(r, k == 0)
	}
	r.sortImages()
	if len(r.Threads) == 0 && r.Reason.Text == "" { // a process that ran out of memory has no stacks
		return nil, fmt.Errorf("crash: %s: %w: it has no thread", name, ErrDamaged)
	}
	r.stripSignatures()
	r.crashedFirst()
	return r, nil
}

// unixTime makes a time of the seconds, or in later versions microseconds, since 1970 that some
// reports have; other text stays.
func unixTime(text string) string {
	v, ok := wholeNumber(text)
	switch {
	case !ok:
		return text
	case v >= 1e14:
		return time.UnixMicro(int64(v)).UTC().Format(time.RFC3339)
	}
	return time.Unix(int64(v), 0).UTC().Format(time.RFC3339)
}

// recrash reads the other report, which may stand there as text, too.
func recrash(raw json.RawMessage) *ksReport {
	if len(raw) == 0 {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	var inner ksReport
	if json.Unmarshal(raw, &inner) != nil {
		return nil
	}
	return &inner
}

// addTo adds one report to what was read; main is the one of the crash itself.
func (j *ksReport) addTo(r *Report, main bool) {
	s, c := &j.System.V, &j.Crash.V
	if r.Version == "" && s.Name != "" {
		r.Version = strings.TrimSpace(fmt.Sprintf("%s %s (%s)", s.Name, s.Version, s.Build))
	}
	if r.OS == "" && s.Name != "" {
		r.OS = appleOS(string(s.Name))
	}
	if r.Arch == "" && s.CPU != "" {
		r.setArch(string(s.CPU))
	}
	// It calls both x86s "x86", and what it doesn't know "unknown"; its images are of one type.
	if len(j.Images.V) > 0 && (r.arch == nil || r.Arch == "386") {
		if arch := j.Images.V[0].image().Arch; arch != "" {
			r.setArch(arch)
		}
	}
	p := &r.Process
	for _, name := range []words{s.Process, j.Report.V.Process} {
		if p.Name == "" {
			p.Name = string(name)
		}
	}
	if p.Path == "" {
		p.Path = string(s.Path)
	}
	if p.PID == 0 {
		p.PID = int(int32(s.PID))
	}
	if len(r.Images) == 0 {
		for k := range j.Images.V[:min(len(j.Images.V), maxImages)] {
			r.Images = append(r.Images, j.Images.V[k].image())
		}
	}
	threads := c.Threads.V
	if c.Crashed.V != nil {
		c.Crashed.V.Crashed = true
		threads = append([]ksThread{*c.Crashed.V}, threads...)
	}
	if main {
		r.Reason = c.reason()
	} else if text := c.reason().Text; text != "" {
		r.Reason.Details = append(r.Reason.Details, "while this was reported: "+text)
	}
	for k := range threads[:min(len(threads), maxThreads)] {
		t := threads[k].thread()
		// What was thrown has left its stack as return addresses alone.
		t.stack = t.Crashed && (c.Error.V.Type == "nsexception" || c.Error.V.Type == "cpp_exception" || c.Error.V.Type == "user")
		if !main {
			t.State, t.Crashed = "crashed while the crash was reported", false
		}
		r.Threads = append(r.Threads, t)
	}
	if main {
		r.userStack(&c.Error.V)
	}
}

func (i *ksImage) image() *Image {
	im := &Image{ID: appleID(string(i.UUID)), Path: string(i.Name), Load: uint64(i.Addr), Size: uint64(i.Size)}
	switch i.CPUType { // mach/machine.h
	case 0x0100000c:
		if im.Arch = "arm64"; i.Subtype&0xff == 2 {
			im.Arch = "arm64e"
		}
	case 0x01000007:
		im.Arch = "x86_64"
	case 12:
		im.Arch = "armv7"
	case 7:
		im.Arch = "i386"
	}
	return im
}

func (t *ksThread) thread() *Thread {
	own := &Thread{TID: uint64(t.Index), Name: string(t.Name), State: string(t.State), Crashed: t.Crashed}
	if own.Name == "" {
		own.Name = string(t.Queue)
	}
	for k := range t.Backtrace.V.Contents[:min(len(t.Backtrace.V.Contents), maxRaw)] {
		f := &t.Backtrace.V.Contents[k]
		raw := rawFrame{addr: uint64(f.Addr), function: string(f.Symbol), module: string(f.Object), base: uint64(f.Load)}
		if raw.offset = uint64(f.Addr - f.Start); raw.function == "<redacted>" {
			raw.function = ""
		}
		own.raw = append(own.raw, raw)
	}
	if n := t.Backtrace.V.Skipped; n > 0 && n < 1<<31 {
		own.EndSays = fmt.Sprintf("%d frames were left out by the report", n)
	}
	for name, v := range t.Registers.V.Basic {
		if len(own.Registers) < 128 && len(name) < 16 {
			own.Registers = append(own.Registers, Register{name, uint64(v)})
		}
	}
	orderRegisters(own.Registers)
	return own
}

// userStack adds the stack that a program reported itself, of a language of its own.
func (r *Report) userStack(e *ksError) {
	var lines []words
	if json.Unmarshal(e.User.V.Backtrace, &lines) != nil || len(lines) == 0 {
		return
	}
	t := &Thread{Name: "user reported", State: strings.TrimSpace("reported by the program " + string(e.User.V.Language)), stack: true}
	for _, line := range lines[:min(len(lines), maxRaw)] {
		t.raw = append(t.raw, rawFrame{function: string(line)})
	}
	r.Threads = append(r.Threads, t)
}

// cppType is the name of a C++ type that is mangled as std::type_info has it.
func cppType(name string) string {
	plain, ok := strings.CutPrefix(demangle.Name("_ZTI"+name), "typeinfo for ")
	if !ok {
		return name
	}
	return plain
}

func (c *ksCrash) reason() Reason {
	e := &c.Error.V
	why := Reason{}
	switch {
	case e.Mach.V.Exception != "" && e.Type != "nsexception" && e.Type != "cpp_exception" && e.Type != "user":
		why.Signal, why.Code = string(e.Mach.V.Exception), string(e.Mach.V.Code)
	case e.Type == "nsexception" && e.NSException.V.Name != "":
		why.Signal = string(e.NSException.V.Name)
	case e.Type == "cpp_exception" && e.CPP.V.Name != "":
		why.Signal = cppType(string(e.CPP.V.Name))
	case e.Type == "user" && e.User.V.Name != "":
		why.Signal = string(e.User.V.Name)
	case e.Type == "memory_termination":
		why.Signal, why.Code = string(e.Signal.V.Name), string(e.Type)
	case e.Signal.V.Name != "":
		why.Signal, why.Code = string(e.Signal.V.Name), string(e.Signal.V.Code)
	default:
		why.Signal = string(e.Type)
	}
	if e.Address != nil && (e.Type == "mach" || e.Type == "signal") {
		why.Address, why.Has = uint64(*e.Address), true
	}
	why.text()
	for _, text := range []words{e.Reason, e.NSException.V.Reason, e.User.V.Line, c.Diagnosis} {
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && len(why.Details) < 64 && !strings.HasSuffix(why.Text, line) {
				why.Details = append(why.Details, line)
			}
		}
	}
	return why
}
