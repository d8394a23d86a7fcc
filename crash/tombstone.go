package crash

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/callreel/callreel/symbols/symbolize"
)

// Android's reports of native crashes: in text, and since version 12 in protobuf beside it.
const (
	Tombstone      Format = "tombstone"
	TombstoneProto Format = "tombstone-proto"
)

// isTombstone says whether text begins like a tombstone, also with what logcat puts before lines.
func isTombstone(start string) bool {
	if strings.Contains(start, "ABI: '") && strings.Contains(start, "backtrace:") && strings.Contains(start, "#00 pc ") {
		return true // somebody has cut off the lines before
	}
	return strings.Contains(start, ">>> ") && strings.Contains(start, "pid: ") && (strings.Contains(start, "ABI: '") || strings.Contains(start, "Build fingerprint:") ||
		strings.Contains(start, "*** *** ***"))
}

// tombstone is one that is being read.
type tombstone struct {
	report *Report
	thread *Thread
	images map[[2]string]*Image
	stack  bool // lines are frames
	memory bool // lines are memory near the crashed thread's PC
	near   codeBytes
}

// readTombstone reads a tombstone.
func readTombstone(name string, in io.ReaderAt, size int64) (*Report, error) {
	text, err := readText(name, in, size)
	if err != nil {
		return nil, err
	}
	b := &tombstone{report: &Report{Format: Tombstone, OS: "android"}, images: map[[2]string]*Image{}}
	for line := range strings.Lines(text) {
		if !b.line(strings.TrimRight(logcat(line), " \t\r\n")) {
			break
		}
	}
	r := b.report
	if len(r.Threads) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no thread", name, ErrDamaged)
	}
	for _, t := range r.Threads {
		orderRegisters(t.Registers)
	}
	r.codeNear(r.Threads[0], b.near)
	r.Reason.text()
	r.crashedFirst()
	return r, nil
}

// logcat takes off what logcat puts before a line: "06-12 10:11:12.123  123  456 F DEBUG   : ".
func logcat(line string) string {
	if at := strings.Index(line, "DEBUG"); at >= 0 && at < 64 {
		if _, rest, ok := strings.Cut(line[at:], ": "); ok {
			return rest
		}
		return ""
	}
	return line
}

// line reads one line; false ends the report.
func (b *tombstone) line(line string) bool {
	text, r := strings.TrimSpace(line), b.report
	key, value, _ := strings.Cut(text, ": ")
	value = strings.TrimSpace(value)
	switch {
	case text == "":
		b.memory = false
		b.stack = b.stack && len(b.thread.raw) == 0 // a blank line may follow "backtrace:"
		return true
	case strings.HasPrefix(text, "*** ***") && len(r.Threads) > 0:
		return false // another one follows
	case strings.HasPrefix(text, "#") && b.thread != nil && b.stack:
		b.frame(text)
	case strings.HasPrefix(text, "memory near ") || strings.HasPrefix(text, "code around "):
		register, _, _ := strings.Cut(strings.TrimRight(text, ":"), " (")
		b.memory = len(r.Threads) == 1 && pcNames[register[strings.LastIndexByte(register, ' ')+1:]]
	case b.memory:
		b.near.addLine(text)
	case strings.HasPrefix(text, "backtrace:"):
		b.stack = b.thread != nil && len(b.thread.raw) == 0
	case key == "Build fingerprint":
		r.Version = strings.Trim(value, "'")
	case key == "Timestamp":
		r.Time = value
	case key == "ABI":
		r.setArch(strings.Trim(value, "'"))
	case key == "Cmdline":
		r.Process.Path = value
	case key == "Abort message" || key == "Cause":
		r.detail(text)
	case strings.HasPrefix(text, "pid: "):
		b.begin(text)
	case strings.HasPrefix(text, "signal ") && r.Reason.Signal == "":
		b.signal(text)
	case b.thread != nil && len(b.thread.raw) == 0 && !b.stack:
		b.registers(text)
	}
	return true
}

// begin reads "pid: 17946, tid: 17949, name: crasher  >>> crasher <<<".
func (b *tombstone) begin(text string) {
	head, command, _ := strings.Cut(text, ">>>")
	t := &Thread{Crashed: len(b.report.Threads) == 0}
	for _, part := range strings.SplitN(head, ", ", 3) {
		key, value, _ := strings.Cut(part, ": ")
		value = strings.TrimSpace(value)
		switch key {
		case "pid":
			b.report.Process.PID, _ = strconv.Atoi(value) // 0 when it is none
		case "tid":
			t.TID, _ = strconv.ParseUint(value, 10, 32)
		case "name":
			t.Name = value
		}
	}
	if b.report.Process.Name == "" {
		b.report.Process.Name = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(command), "<<<"))
	}
	b.stack = false
	if len(b.report.Threads) < maxThreads {
		b.thread = t
		b.report.Threads = append(b.report.Threads, t)
	}
}

// signal reads "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0xc".
func (b *tombstone) signal(text string) {
	if b.thread == nil { // nothing says of which
		b.thread = &Thread{Crashed: true}
		b.report.Threads = append(b.report.Threads, b.thread)
	}
	why := &b.report.Reason
	for part := range strings.SplitSeq(text, ", ") {
		name := part
		if open := strings.IndexByte(part, '('); open >= 0 {
			name = strings.TrimRight(part[open+1:], ")")
		}
		switch {
		case strings.HasPrefix(part, "signal "):
			why.Signal = name
		case strings.HasPrefix(part, "code "):
			why.Code, _, _ = strings.Cut(name, " ")
		case strings.HasPrefix(part, "fault addr "):
			if v, ok := parseHex(firstWord(part[len("fault addr "):])); ok {
				why.Address, why.Has = v, true
			}
		}
	}
}

// maxNear bounds the memory near the PC that is kept, in bytes.
const maxNear = 4096

// addLine adds a line of memory: an address and words of four or eight bytes, and what they are in
// ASCII.
func (c *codeBytes) addLine(text string) {
	head, rest, _ := strings.Cut(text, " ")
	addr, ok := parseHex(head)
	if !ok || len(c.data) > 0 && addr != c.start+uint64(len(c.data)) {
		return
	}
	if len(c.data) == 0 {
		c.start = addr
	}
	words, _, _ := strings.Cut(rest, "  ")
	for word := range strings.FieldsSeq(words) {
		v, ok := parseHex(word)
		if !ok || len(word) != 8 && len(word) != 16 || len(c.data) > maxNear {
			return
		}
		for range len(word) / 2 {
			c.data, v = append(c.data, byte(v)), v>>8
		}
	}
}

// registers reads "x0  0000007da81396c0  x1 …".
func (b *tombstone) registers(text string) {
	fields := strings.Fields(text)
	for k := 0; k+1 < len(fields); k += 2 {
		v, ok := parseHex(fields[k+1])
		name := fields[k]
		if !ok || len(fields[k+1]) < 8 || len(name) > 6 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return
		}
		if len(b.thread.Registers) < 128 {
			b.thread.Registers = append(b.thread.Registers, Register{name, v})
		}
	}
}

// frame reads "#01 pc 0000000000042c9c  /system/lib64/libc.so (offset 0x1000) (abort+168)
// (BuildId: 0123…)". The address is a link address, and inside the call.
func (b *tombstone) frame(text string) {
	_, rest, ok := strings.Cut(text, " pc ")
	if !ok || len(b.thread.raw) >= maxRaw {
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	addr, ok := parseHex(word)
	if !ok {
		return
	}
	raw := rawFrame{addr: addr, kind: symbolize.Exact}
	file, parts := tombstoneParts(strings.TrimSpace(rest))
	id := ""
	for _, part := range parts {
		switch {
		case strings.HasPrefix(part, "BuildId: "):
			id = buildID(part[len("BuildId: "):])
		case strings.HasPrefix(part, "offset 0x"):
		case raw.function == "":
			raw.function = part
			if plus := strings.LastIndexByte(part, '+'); plus > 0 {
				if v, err := strconv.ParseUint(part[plus+1:], 0, 64); err == nil {
					raw.function, raw.offset = part[:plus], v
				}
			}
		}
	}
	if file != "" && file != "<unknown>" && !strings.HasPrefix(file, "<anonymous") {
		raw.image = b.image(file, id)
	}
	b.thread.raw = append(b.thread.raw, raw)
}

// tombstoneParts takes "path (a) (b(c))" apart.
func tombstoneParts(text string) (file string, parts []string) {
	file, rest, ok := strings.Cut(text, " (")
	file = strings.TrimSpace(file)
	for depth, start, k := 1, 0, 0; ok && k < len(rest); k++ {
		switch rest[k] {
		case '(':
			if depth == 0 {
				start = k + 1
			}
			depth++
		case ')':
			if depth--; depth == 0 && len(parts) < 8 {
				parts = append(parts, rest[start:k])
			}
		}
	}
	return file, parts
}

// image returns the image of a path, which may be one inside of a package: "base.apk!libfoo.so".
func (b *tombstone) image(file, id string) *Image {
	if _, inside, ok := strings.Cut(file, "!"); ok {
		file = path.Join(path.Dir(file), path.Base(inside))
	}
	key := [2]string{file, id}
	im := b.images[key]
	if im == nil && len(b.report.Images) < maxImages {
		im = &Image{Path: file, ID: id, Arch: b.report.Arch, linked: true}
		b.images[key] = im
		b.report.Images = append(b.report.Images, im)
	}
	return im
}
