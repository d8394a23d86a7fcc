package crash

import (
	"fmt"
	"strconv"
	"strings"
)

// GoPanic is what Go's runtime prints of a panic or a fatal signal.
const GoPanic Format = "go-panic"

// isGoPanic says whether text holds the stacks of goroutines.
func isGoPanic(text string) bool {
	return (strings.Contains(text, "panic: ") || strings.Contains(text, "fatal error: ") || strings.Contains(text, "SIG")) && strings.Contains(text, "\ngoroutine ")
}

// readGoPanic reads stacks line by line. Names, files and lines are the runtime's own.
func readGoPanic(name, text string) (*Report, error) {
	r := &Report{Format: GoPanic}
	var t *Thread
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case line == "":
			t = nil
		case strings.HasPrefix(line, "goroutine "):
			if t = goroutine(line); t == nil || len(r.Threads) >= maxThreads {
				t = nil
				continue
			}
			t.Crashed = len(r.Threads) == 0
			r.Threads = append(r.Threads, t)
		case t == nil && len(r.Threads) == 0:
			r.goReason(line)
		case t == nil:
			if name, value, ok := strings.Cut(line, " "); ok && len(r.Threads) > 0 { // registers stand at the end
				if v, ok := parseHex(strings.TrimSpace(value)); ok && strings.HasPrefix(strings.TrimSpace(value), "0x") && len(r.Threads[0].Registers) < 128 && len(name) < 8 {
					r.Threads[0].Registers = append(r.Threads[0].Registers, Register{name, v})
				}
			}
		case strings.HasPrefix(line, "\t") && len(t.raw) > 0:
			t.raw[len(t.raw)-1].goPlace(strings.TrimSpace(line))
		case len(t.raw) < maxRaw:
			t.raw = append(t.raw, rawFrame{function: goFunction(line)})
		}
	}
	if len(r.Threads) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no goroutine", name, ErrUnknownFormat)
	}
	return r, nil
}

// goReason reads what is printed before the first goroutine.
func (r *Report) goReason(line string) {
	switch {
	case r.Reason.Text == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "SIG")):
		r.Reason.Text = line
	case r.Reason.Text != "" && len(r.Reason.Details) < 64:
		r.Reason.Details = append(r.Reason.Details, line)
	}
	if at := strings.Index(line, "addr=0x"); at >= 0 && strings.HasPrefix(line, "[signal ") {
		r.Reason.Address, r.Reason.Has = parseHex(firstWord(line[at+len("addr="):]))
		r.Reason.Signal, _, _ = strings.Cut(strings.TrimPrefix(line, "[signal "), ":")
	}
}

// goroutine reads "goroutine 7 gp=0x… m=3 mp=0x… [chan receive, 2 minutes]:".
func goroutine(line string) *Thread {
	rest := line[len("goroutine "):]
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	id, err := strconv.ParseUint(rest[:digits], 10, 64)
	if err != nil {
		return nil
	}
	t := &Thread{TID: id, Name: fmt.Sprintf("goroutine %d", id)}
	if _, state, ok := strings.Cut(rest, "["); ok {
		t.State, _, _ = strings.Cut(state, "]")
	}
	return t
}

// goFunction takes the arguments off "main.(*T).f(0x1, {0x2, 0x3})", and the rest of "created by
// main.g in goroutine 1".
func goFunction(line string) string {
	if made, ok := strings.CutPrefix(line, "created by "); ok {
		made, _, _ = strings.Cut(made, " in goroutine ")
		return made
	}
	for depth, k := 0, len(line)-1; strings.HasSuffix(line, ")") && k > 0; k-- {
		switch line[k] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return line[:k]
			}
		}
	}
	return line
}

// goPlace reads "/src/a.go:12 +0x1d fp=0xc000 sp=0xc001 pc=0x4a2f".
func (f *rawFrame) goPlace(text string) {
	place, rest, _ := strings.Cut(text, " ")
	if colon := strings.LastIndexByte(place, ':'); colon > 0 {
		if line, err := strconv.ParseUint(place[colon+1:], 10, 32); err == nil {
			f.file, f.line = place[:colon], uint32(line)
		}
	}
	for word := range strings.FieldsSeq(rest) {
		if v, ok := strings.CutPrefix(word, "pc="); ok {
			f.addr, _ = parseHex(v) // 0 when it is none
		} else if v, ok := strings.CutPrefix(word, "+"); ok {
			f.offset, _ = parseHex(v)
		}
	}
}
