package crash

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// IPS is Apple's crash report since macOS 12 and iOS 15: a line of JSON about the report, and the
// report itself in JSON.
const IPS Format = "ips"

// ips is the second part.
type ips struct {
	PID       number `json:"pid"`
	Name      words  `json:"procName"`
	Path      words  `json:"procPath"`
	CPU       words  `json:"cpuType"`
	Time      words  `json:"captureTime"`
	OSVersion loose[struct {
		Train words `json:"train"`
		Build words `json:"build"`
	}] `json:"osVersion"`
	Exception loose[struct {
		Codes   words `json:"codes"`
		Type    words `json:"type"`
		Signal  words `json:"signal"`
		Subtype words `json:"subtype"`
		Message words `json:"message"`
	}] `json:"exception"`
	Termination loose[struct {
		Indicator words `json:"indicator"`
		Namespace words `json:"namespace"`
		Code      words `json:"code"`
		Details   words `json:"details"`
	}] `json:"termination"`
	ASI            loose[map[string]json.RawMessage] `json:"asi"`
	Faulting       *number                           `json:"faultingThread"`
	Threads        []ipsThread                       `json:"threads"`
	Images         []ipsImage                        `json:"usedImages"`
	LastException  loose[[]ipsFrame]                 `json:"lastExceptionBacktrace"`
	ExceptionWords loose[struct {
		Name   words `json:"name"`
		Reason words `json:"composed_message"`
		Class  words `json:"class"`
	}] `json:"exceptionReason"`
	Instructions loose[struct {
		Before string `json:"beforePC"`
		At     string `json:"atPC"`
	}] `json:"instructionByteStream"`
}

type ipsThread struct {
	ID        number                            `json:"id"`
	Name      words                             `json:"name"`
	Queue     words                             `json:"queue"`
	Triggered bool                              `json:"triggered"`
	Frames    []ipsFrame                        `json:"frames"`
	State     loose[map[string]json.RawMessage] `json:"threadState"`
}

type ipsFrame struct {
	Image    *number `json:"imageIndex"`
	Offset   number  `json:"imageOffset"`
	Symbol   words   `json:"symbol"`
	Location number  `json:"symbolLocation"`
	File     words   `json:"sourceFile"`
	Line     number  `json:"sourceLine"`
	Inline   bool    `json:"inline"`
}

type ipsImage struct {
	UUID words  `json:"uuid"`
	Base number `json:"base"`
	Size number `json:"size"`
	Path words  `json:"path"`
	Name words  `json:"name"`
	Arch words  `json:"arch"`
}

// isIPS says whether JSON is that of a report: of both parts, or of the second alone.
func isIPS(start string) bool {
	first, rest, two := strings.Cut(start, "\n")
	if two && strings.Contains(first, `"bug_type"`) && strings.TrimSpace(rest) != "" {
		return true
	}
	return strings.Contains(start, `"usedImages"`) || strings.Contains(start, `"procName"`) || strings.Contains(start, `"captureTime"`)
}

// readIPS reads both parts, of which the first may be missing.
func readIPS(name, text string) (*Report, error) {
	body := strings.TrimSpace(text)
	var head struct {
		OS   words `json:"os_version"`
		Name words `json:"name"`
		Kind words `json:"bug_type"`
	}
	if first, rest, two := strings.Cut(body, "\n"); two && strings.HasSuffix(strings.TrimSpace(first), "}") && json.Unmarshal([]byte(first), &head) == nil {
		body = strings.TrimSpace(rest)
	}
	var j ips
	if err := json.NewDecoder(strings.NewReader(body)).Decode(&j); err != nil {
		if strings.HasPrefix(body, "{") {
			return nil, fmt.Errorf("crash: %s: %w: %w", name, ErrDamaged, err)
		}
		return readAppleText(name, body) // older systems put the text behind the same line
	}
	if len(j.Threads) == 0 && len(j.LastException.V) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no thread (bug_type %s)", name, ErrUnknownFormat, string(head.Kind))
	}
	r := &Report{Format: IPS, Time: string(j.Time), Process: Process{PID: int(int32(j.PID)), Name: string(j.Name), Path: string(j.Path)}}
	r.Version = string(j.OSVersion.V.Train)
	if r.Version == "" {
		r.Version = string(head.OS)
	} else if b := j.OSVersion.V.Build; b != "" {
		r.Version += " (" + string(b) + ")"
	}
	r.OS = appleOS(r.Version)
	r.setArch(string(j.CPU))
	images := r.ipsImages(&j)
	j.reason(r)
	for k := range j.Threads {
		if k == maxThreads {
			r.problem("%s: only %d of %d threads are read", name, maxThreads, len(j.Threads))
			break
		}
		t := &j.Threads[k]
		own := &Thread{TID: uint64(t.ID), Name: string(t.Name), raw: ipsFrames(t.Frames, images), Registers: ipsRegisters(t.State.V)}
		if own.Name == "" {
			own.Name = string(t.Queue)
		}
		own.Crashed = t.Triggered || j.Faulting != nil && int(*j.Faulting) == k
		r.Threads = append(r.Threads, own)
	}
	if len(j.LastException.V) > 0 {
		// What threw goes before where the process then ended itself.
		t := &Thread{Name: "last exception backtrace", State: "exception", raw: ipsFrames(j.LastException.V, images), stack: true}
		r.Threads = append(r.Threads, t)
	}
	r.stripSignatures()
	r.crashedFirst()
	r.ipsCode(&j)
	return r, nil
}

// appleOS is the system of a version's text.
func appleOS(version string) string {
	for _, s := range [...][2]string{{"macOS", "macos"}, {"Mac OS X", "macos"}, {"OS X", "macos"}, {"iPhone OS", "ios"}, {"iOS", "ios"}, {"iPadOS", "ios"},
		{"tvOS", "tvos"}, {"Apple TVOS", "tvos"}, {"watchOS", "watchos"}, {"Watch OS", "watchos"}, {"visionOS", "visionos"}, {"xrOS", "visionos"}} {
		if strings.HasPrefix(version, s[0]) {
			return s[1]
		}
	}
	return "macos"
}

// ipsImages makes the images, in the report's order for its frames, and sorted for the report.
func (r *Report) ipsImages(j *ips) []*Image {
	list := make([]*Image, 0, min(len(j.Images), maxImages))
	for k := range j.Images[:min(len(j.Images), maxImages)] {
		from := &j.Images[k]
		im := &Image{ID: appleID(string(from.UUID)), Path: string(from.Path), Arch: string(from.Arch), Load: uint64(from.Base), Size: uint64(from.Size)}
		if im.Path == "" {
			im.Path = string(from.Name)
		}
		list = append(list, im)
		if im.ID != "" || im.Path != "" { // else it stands for addresses in no image
			r.Images = append(r.Images, im)
		}
	}
	r.sortImages()
	return list
}

func ipsFrames(list []ipsFrame, images []*Image) []rawFrame {
	out := make([]rawFrame, 0, min(len(list), maxRaw))
	for k := range list[:min(len(list), maxRaw)] {
		f := &list[k]
		raw := rawFrame{
			addr: uint64(f.Offset), function: string(f.Symbol), offset: uint64(f.Location), file: string(f.File), line: uint32(f.Line), inlined: f.Inline,
		}
		if f.Image != nil && uint64(*f.Image) < uint64(len(images)) {
			im := images[*f.Image]
			raw.addr += im.Load
			if im.ID != "" || im.Path != "" {
				raw.image = im
			}
		}
		out = append(out, raw)
	}
	return out
}

// ipsRegisters reads a threadState: of arm64 "x" with 29 numbers and some with names, of x86-64
// names only.
func ipsRegisters(state map[string]json.RawMessage) []Register {
	type register struct {
		Value *number `json:"value"`
	}
	var out []Register
	for name, raw := range state {
		if name == "x" || name == "r" {
			var list []register
			if json.Unmarshal(raw, &list) == nil {
				for k := range list[:min(len(list), 64)] {
					if v := list[k].Value; v != nil {
						out = append(out, Register{fmt.Sprintf("%s%d", name, k), uint64(*v)})
					}
				}
			}
			continue
		}
		var one register
		if json.Unmarshal(raw, &one) == nil && one.Value != nil && len(name) < 16 && len(out) < 128 {
			out = append(out, Register{name, uint64(*one.Value)})
		}
	}
	orderRegisters(out)
	return out
}

// reason puts together why it ended.
func (j *ips) reason(r *Report) {
	e := &j.Exception.V
	why := Reason{Signal: string(e.Type), Code: string(e.Signal)}
	if s := string(e.Subtype); s != "" {
		why.Details = append(why.Details, s)
		if _, at, ok := strings.Cut(s, " at "); ok {
			if v, ok := parseHex(firstWord(at)); ok {
				why.Address, why.Has = v, true
			}
		}
	} else if e.Codes != "" {
		why.Details = append(why.Details, "codes "+string(e.Codes))
	}
	why.text()
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" && len(why.Details) < 64 {
			why.Details = append(why.Details, text)
		}
	}
	add(string(e.Message))
	if t := &j.Termination.V; t.Indicator != "" || t.Namespace != "" {
		add(fmt.Sprintf("termination: %s %s %s", t.Namespace, t.Code, t.Indicator))
		add(string(t.Details))
	}
	if x := &j.ExceptionWords.V; x.Name != "" || x.Reason != "" {
		add(fmt.Sprintf("%s: %s", x.Name, x.Reason))
	}
	for _, library := range slices.Sorted(maps.Keys(j.ASI.V)) {
		var list []words
		if json.Unmarshal(j.ASI.V[library], &list) == nil {
			for _, text := range list {
				add(library + ": " + string(text))
			}
		}
	}
	r.Reason = why
}

// ipsCode disassembles the bytes around the PC that a report has of the crashed thread.
func (r *Report) ipsCode(j *ips) {
	if len(r.Threads) == 0 || !r.Threads[0].Crashed || len(r.Threads[0].raw) == 0 || r.arch == nil {
		return
	}
	before, err1 := base64.StdEncoding.DecodeString(j.Instructions.V.Before)
	at, err2 := base64.StdEncoding.DecodeString(j.Instructions.V.At)
	pc := r.Threads[0].raw[0].addr
	if err1 != nil || err2 != nil || len(at) == 0 || len(at)+len(before) > 4096 || pc < uint64(len(before)) {
		return
	}
	start := pc - uint64(len(before))
	r.bytes = &codeBytes{start, append(before, at...)}
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return strings.TrimRight(word, ",.)")
}
