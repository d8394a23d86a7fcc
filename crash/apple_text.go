package crash

import (
	"fmt"
	"strconv"
	"strings"
)

// AppleText is Apple's crash report in text: .crash files, and what others write in that form.
const AppleText Format = "apple-crash"

// isAppleText says whether text begins like a report of Apple's.
func isAppleText(start string) bool {
	n := 0
	for _, key := range []string{"Incident Identifier:", "Process:", "Exception Type:", "OS Version:", "Report Version:", "Code Type:", "Hardware Model:", "Crashed Thread:"} {
		if strings.HasPrefix(start, key) || strings.Contains(start, "\n"+key) {
			n++
		}
	}
	if n < 3 { // somebody may have cut off its head
		return strings.Contains(start, "\nBinary Images:") && (strings.HasPrefix(start, "Thread 0") || strings.Contains(start, "\nThread 0"))
	}
	return true
}

// appleText is a report that is being read.
type appleText struct {
	report *Report
	thread *Thread // whose frames are read
	state  *Thread // whose registers are read
	mode   appleMode
	byTID  map[uint64]*Thread
	codes  string
}

type appleMode uint8

const (
	appleHead appleMode = iota
	appleFrames
	appleRegisters
	appleImages
	appleDetails
)

// readAppleText reads a report line by line. Lines that mean nothing here are passed over.
func readAppleText(name, text string) (*Report, error) {
	a := &appleText{report: &Report{Format: AppleText, OS: "macos"}, byTID: map[uint64]*Thread{}}
	for line := range strings.Lines(text) {
		a.line(strings.TrimRight(line, " \t\r\n"))
	}
	r := a.report
	if len(r.Threads) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no thread", name, ErrDamaged)
	}
	r.Reason.text()
	r.sortImages()
	r.stripSignatures()
	for _, t := range r.Threads {
		orderRegisters(t.Registers)
	}
	r.crashedFirst()
	return r, nil
}

// line reads one line.
func (a *appleText) line(line string) {
	text := strings.TrimSpace(line)
	switch {
	case text == "":
		if a.mode != appleImages {
			a.mode, a.thread = appleHead, nil
		}
		return
	case strings.HasPrefix(line, "Thread ") && a.threadLine(line):
		return
	case strings.HasPrefix(line, "Last Exception Backtrace"):
		a.begin(&Thread{Name: "last exception backtrace", State: "exception", stack: true})
		return
	case strings.HasPrefix(line, "Application Specific Backtrace"):
		a.begin(&Thread{Name: strings.ToLower(strings.TrimSuffix(text, ":")), State: "exception", stack: true})
		return
	case strings.HasPrefix(line, "Binary Images"):
		a.mode, a.thread = appleImages, nil
		return
	case strings.HasPrefix(line, "Application Specific Information:"):
		a.mode = appleDetails
		return
	}
	switch a.mode {
	case appleFrames:
		if strings.HasPrefix(text, "(0x") || strings.HasPrefix(text, "0x") {
			a.addresses(text)
		} else if !a.frame(text) {
			a.head(line)
		}
	case appleRegisters:
		a.registers(text)
	case appleImages:
		a.image(text)
	case appleDetails:
		a.detail(text)
	default:
		a.head(line)
	}
}

func (a *appleText) detail(text string) {
	if why := &a.report.Reason; len(why.Details) < 64 {
		why.Details = append(why.Details, text)
	}
}

// begin begins a stack.
func (a *appleText) begin(t *Thread) {
	a.mode, a.thread = appleFrames, nil
	if len(a.report.Threads) < maxThreads {
		a.thread = t
		a.report.Threads = append(a.report.Threads, t)
	}
}

// head reads "Key: value".
func (a *appleText) head(line string) {
	key, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !ok || value == "" {
		return
	}
	r := a.report
	switch key {
	case "Date/Time":
		r.Time = value
	case "Process":
		r.Process.Name = value
		if open := strings.LastIndexByte(value, '['); open > 0 {
			r.Process.Name = strings.TrimSpace(value[:open])
			r.Process.PID, _ = strconv.Atoi(strings.Trim(value[open:], "[]")) // 0 when it is none
		}
	case "Path":
		r.Process.Path = value
	case "Code Type":
		r.setArch(firstWord(value))
	case "OS Version":
		r.Version, r.OS = value, appleOS(value)
	case "Exception Type":
		r.Reason.Signal = value
		if name, more, ok := strings.Cut(value, " ("); ok {
			r.Reason.Signal, r.Reason.Code = name, strings.Trim(more, " ()")
		}
	case "Exception Codes", "Exception Subtype":
		a.detail(value)
		if _, at, ok := strings.Cut(value, " at "); ok {
			if v, ok := parseHex(firstWord(at)); ok {
				r.Reason.Address, r.Reason.Has = v, true
			}
		}
	case "Exception Message", "Exception Note", "Termination Reason", "Termination Signal", "Termination Description", "Exception Reason":
		a.detail(key + ": " + value)
	case "Crashed Thread", "Triggered by Thread":
		a.codes = firstWord(value)
	}
}

// threadLine reads what begins a thread, or its registers:
//
//	Thread 0 name:  Dispatch queue: com.apple.main-thread
//	Thread 0 Crashed:: Dispatch queue: com.apple.main-thread
//	Thread 3:: com.apple.NSEventThread
//	Thread 0 crashed with ARM Thread State (64-bit):
func (a *appleText) threadLine(line string) bool {
	rest := line[len("Thread "):]
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits == 0 || digits > 9 {
		return false
	}
	tid, err := strconv.ParseUint(rest[:digits], 10, 32)
	if err != nil {
		return false
	}
	rest = rest[digits:]
	if strings.Contains(rest, "Thread State") {
		a.mode, a.thread, a.state = appleRegisters, nil, a.at(tid)
		if a.report.arch == nil {
			a.report.setArch(firstWord(strings.TrimPrefix(strings.TrimSpace(rest), "crashed with ")))
		}
		return true
	}
	what, name, ok := strings.Cut(rest, ":")
	if !ok {
		return false
	}
	name = strings.TrimSpace(strings.TrimPrefix(name, ":"))
	name = strings.TrimPrefix(name, "Dispatch queue: ")
	t := a.at(tid)
	switch what = strings.TrimSpace(what); what {
	case "name":
		t.Name = name
		return true
	case "", "Crashed", "Highlighted":
	default:
		return false
	}
	if name != "" {
		t.Name = name
	}
	t.Crashed = t.Crashed || what == "Crashed"
	a.mode, a.thread = appleFrames, t
	return true
}

// at returns the thread of a number, which is made when there is none.
func (a *appleText) at(tid uint64) *Thread {
	t := a.byTID[tid]
	if t == nil {
		t = &Thread{TID: tid}
		if len(a.report.Threads) < maxThreads {
			a.byTID[tid] = t
			a.report.Threads = append(a.report.Threads, t)
		}
	}
	return t
}

// frame reads "0   prog   0x0000000100003f4c main + 4 (main.c:3) [inlined]". Names of images may
// have blanks.
func (a *appleText) frame(text string) bool {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	at := strings.Index(text, "0x")
	if digits == 0 || at <= digits || a.thread == nil {
		return false
	}
	word, rest, _ := strings.Cut(text[at:], " ")
	addr, ok := parseHex(word)
	if !ok {
		return false
	}
	raw := rawFrame{addr: addr}
	if name := strings.TrimSpace(text[digits:at]); name != "???" {
		raw.module = name
	}
	if base, _, ok := strings.Cut(strings.TrimSpace(rest), " + "); ok && strings.HasPrefix(base, "0x") {
		raw.base, _ = parseHex(base) // 0 when it is none
	}
	if inlined, ok := strings.CutSuffix(strings.TrimSpace(rest), "[inlined]"); ok {
		raw.inlined, rest = true, inlined
	}
	raw.said(strings.TrimSpace(rest))
	if len(a.thread.raw) < maxRaw {
		a.thread.raw = append(a.thread.raw, raw)
	}
	return true
}

// said reads "symbol + 12 (file.c:3)", "symbol (file.c:3)", "0x100000000 + 3", or, as KSCrash writes
// both, "0x100000000 + 3 (symbol + 12)".
func (f *rawFrame) said(text string) {
	if place, inside, ok := strings.Cut(text, " ("); ok && strings.HasPrefix(place, "0x") && strings.HasSuffix(inside, ")") && strings.Contains(inside, " + ") {
		text = inside[:len(inside)-1]
	}
	if open := strings.LastIndex(text, " ("); open > 0 && strings.HasSuffix(text, ")") {
		inside := text[open+2 : len(text)-1]
		if colon := strings.LastIndexByte(inside, ':'); colon > 0 {
			if line, err := strconv.ParseUint(inside[colon+1:], 10, 32); err == nil {
				f.file, f.line, text = inside[:colon], uint32(line), text[:open]
			}
		}
	}
	name := text
	if plus := strings.LastIndex(text, " + "); plus > 0 {
		if v, err := strconv.ParseUint(text[plus+3:], 0, 64); err == nil {
			name, f.offset = text[:plus], v
		}
	}
	if !strings.HasPrefix(name, "0x") && name != "???" && name != "<redacted>" && !(name == f.file && name == "") {
		f.function = name
	}
}

// addresses reads "(0x183a 0x182f …)", the form of exceptions whose frames have no names.
func (a *appleText) addresses(text string) {
	if a.thread == nil {
		return
	}
	for word := range strings.FieldsSeq(strings.Trim(text, "()")) {
		if v, ok := parseHex(word); ok && len(a.thread.raw) < maxRaw {
			a.thread.raw = append(a.thread.raw, rawFrame{addr: v})
		}
	}
}

// registers reads "rax: 0x01  rbx: 0x02".
func (a *appleText) registers(text string) {
	fields := strings.Fields(text)
	for k := 0; k+1 < len(fields); k++ {
		name, ok := strings.CutSuffix(fields[k], ":")
		if !ok || len(name) > 15 {
			continue
		}
		if v, ok := parseHex(fields[k+1]); ok && a.state != nil && len(a.state.Registers) < 128 {
			a.state.Registers = append(a.state.Registers, Register{name, v})
		}
	}
}

// image reads "0x100000000 - 0x100003fff +prog arm64 (1.0) <4C4C44…> /path/prog". The last
// address belongs to the image; it is "???" where it is not known.
func (a *appleText) image(text string) {
	first, rest, ok := strings.Cut(text, "-")
	load, ok2 := parseHex(strings.TrimSpace(first))
	if !ok || !ok2 || len(a.report.Images) >= maxImages {
		return
	}
	last, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	im := &Image{Load: load}
	if end, ok := parseHex(last); ok && end >= load {
		im.Size = end - load + 1
	}
	before, after, ok := strings.Cut(rest, "<")
	if !ok {
		return
	}
	id, path, ok := strings.Cut(after, ">")
	if !ok {
		return
	}
	im.ID, im.Path = appleID(id), strings.TrimSpace(path)
	words := strings.Fields(before)
	for _, word := range words {
		if goArch(word) != "" && !strings.Contains(word, "-") {
			im.Arch = word
		}
	}
	if im.Path == "" && len(words) > 0 {
		im.Path = strings.TrimPrefix(words[0], "+")
	}
	a.report.Images = append(a.report.Images, im)
}
