package symbolize

import (
	"strconv"
	"strings"
)

// lineKind is what a line of text is.
type lineKind uint8

const (
	otherLine   lineKind = iota
	frameLine            // one frame of a stack
	framePlain           // one frame of a stack, without an address
	signalLine           // "<signal handler called>": a signal interrupted the next frame
	threadLine           // the start of a thread
	imageLine            // an image
	mappingLine          // one line of /proc/PID/maps
	reportLine           // the start of a report that lists its images at the end
	imagesLine           // the headline of that list
	moduleLine           // an image's ID, without a load address
)

// A line is what one line of text says.
type line struct {
	kind    lineKind
	index   int // of a frame, -1 when it has no number
	frame   Frame
	after   int    // of a frame: where in the text its name is put
	tid     string // of a thread
	name    string // of a thread
	image   Image
	mapping mapping
}

// parseLine finds out what a line is. Shapes that are known:
//
//	image LOAD SIZE ID PATH                         SIZE and ID may be -
//	thread TID NAME
//	0x55d2c0a1 [interrupted|signal]                 one address alone
//	#3  0x000055d2c0a1 in f () at f.c:3             gdb; frame #3: lldb
//	#3 0x55d2c0a1 in f (/usr/bin/prog+0x1f)         sanitizers
//	#3 0x000055d2c0a1 f (prog + 0x1f)               systemd, with "Module prog with build-id 4c4c…"
//	#03 pc 00012340  /system/lib64/libc.so          Android
//	3   prog   0x0000000100003f4c 0x100000000 + 16204   Apple
//	0x100000000 - 0x100003fff prog (1) <4C4C…> /path    Apple's list of images
//	/usr/bin/prog(f+0x1f) [0x55d2c0a1]              glibc's backtrace_symbols; prog [0x401136]
//	[<ffffffff81234567>] f+0x1f/0x40                Linux, older than 4.9
//	 3: 0x55d2c0a1 - f                              Rust
func parseLine(text string) line {
	l := line{index: -1}
	lead := len(text) - len(strings.TrimLeft(text, " \t*"))
	body := text[lead:]
	if body == "" {
		return l
	}
	for _, shape := range [...]func(l *line, body string, lead int) bool{
		(*line).numbered, (*line).address, (*line).apple, (*line).glibc, (*line).kernel, (*line).header, (*line).maps,
	} {
		if shape(&l, body, lead) {
			return l
		}
		l = line{index: -1}
	}
	return l
}

// numbered reads "#3 …", "frame #3: …" and "3: …".
func (l *line) numbered(body string, lead int) bool {
	rest, hash := strings.CutPrefix(strings.TrimPrefix(body, "frame "), "#")
	digits := leadingDigits(rest)
	if digits == 0 || digits > 6 {
		return false
	}
	l.index, _ = strconv.Atoi(rest[:digits])
	rest = rest[digits:]
	if !hash {
		if !strings.HasPrefix(rest, ":") {
			return false
		}
		l.kind = frameLine
		return l.addressAt(body, lead, strings.TrimLeft(rest[1:], " "))
	}
	rest = strings.TrimLeft(strings.TrimPrefix(rest, ":"), " \t")
	l.kind = frameLine
	switch {
	case strings.HasPrefix(rest, "<signal handler called>"):
		l.kind = signalLine
		return true
	case strings.HasPrefix(rest, "pc "):
		return l.android(body, lead, rest[len("pc "):])
	case !l.addressAt(body, lead, rest):
		l.kind = framePlain
		return true
	}
	if !l.sanitizer(body) {
		l.systemd(body)
	}
	return true
}

// addressAt takes the frame's address from the start of rest, which is the end of body.
func (l *line) addressAt(body string, lead int, rest string) bool {
	word := rest[:wordEnd(rest)]
	v, ok := parse0x(word)
	if !ok {
		return false
	}
	l.frame = Frame{Address: v}
	if l.index > 0 {
		l.frame.Kind = Return
	}
	l.after = lead + len(body) - len(rest) + len(word)
	return true
}

// android reads "00012340  /system/lib64/libc.so (f+16) (BuildId: 4c4c…)". Its addresses
// are link addresses and already those of the calls.
func (l *line) android(body string, lead int, rest string) bool {
	word := rest[:wordEnd(rest)]
	v, ok := parseHex(word)
	if !ok {
		return false
	}
	path := strings.TrimLeft(rest[len(word):], " ")
	id := buildID(path)
	path, _, _ = strings.Cut(path, " (")
	if path = strings.TrimRight(path, " "); path == "" {
		return false
	}
	l.frame = Frame{Address: v, Kind: Exact, Place: &Place{Path: path, ID: id, Offset: v}}
	l.after = lead + len(body) - len(rest) + len(word)
	return true
}

// sanitizer looks for "(/usr/bin/prog+0x1f)". Sanitizers print the addresses of the calls.
func (l *line) sanitizer(body string) bool {
	open := strings.LastIndex(body, " (/")
	if open < 0 {
		return false
	}
	inside, _, ok := strings.Cut(body[open+2:], ")")
	plus := strings.LastIndex(inside, "+0x")
	if !ok || plus < 0 {
		return false
	}
	v, ok := parse0x(inside[plus+1:])
	if ok {
		l.frame.Kind = Exact
		l.frame.Place = &Place{Path: inside[:plus], ID: buildID(body), Offset: v}
	}
	return ok
}

// systemd looks for "(prog + 0x1f)" at the end. Only the base name is known; the ID may
// stand in another line.
func (l *line) systemd(body string) {
	path, rest, ok := cutLast(strings.TrimRight(body, " \r"), " + ")
	_, path, open := cutLast(path, "(")
	v, valid := parse0x(strings.TrimSuffix(rest, ")"))
	if ok && open && valid && path != "" && strings.HasSuffix(rest, ")") {
		l.frame.Place = &Place{Path: path, Offset: v}
	}
}

// buildID finds "(BuildId: 4c4c…)".
func buildID(text string) string {
	_, after, ok := strings.Cut(text, "(BuildId: ")
	if !ok {
		return ""
	}
	word, _, ok := strings.Cut(after, ")")
	id, valid := parseID(word)
	if !ok || !valid {
		return ""
	}
	return id
}

// address reads a line that is one address, with or without what it is.
func (l *line) address(body string, lead int) bool {
	word := body[:wordEnd(body)]
	v, ok := parse0x(word)
	if !ok {
		if len(word) < 8 {
			return false // more likely a word or a number
		}
		if v, ok = parseHex(word); !ok {
			return false
		}
	}
	switch strings.Trim(body[len(word):], " \t\r") {
	case "":
	case "interrupted":
		l.frame.Kind = Exact
	case "signal":
		l.frame.Kind = Signal
	case "return":
		l.frame.Kind = Return
	default:
		return false
	}
	l.kind, l.frame.Address, l.after = frameLine, v, lead+len(word)
	return true
}

// glibc reads "path(f+0x1f) [0x55d2c0a1]" (backtrace_symbols(3)). All of its addresses
// are behind calls, but for what a signal has interrupted. What handlers return to may be
// in an image that has no file, as the vdso, so its printed name says which that is.
func (l *line) glibc(body string, lead int) bool {
	body = strings.TrimRight(body, " \t\r")
	path, rest, ok1 := cutLast(body, "[0x")
	if !ok1 || !strings.HasSuffix(rest, "]") {
		return false
	}
	v, ok := parseHex(rest[:len(rest)-1])
	path = strings.TrimRight(path, " ")
	var inside string
	if name, tail, open := cutLast(path, "("); open && strings.HasSuffix(tail, ")") {
		path, inside = name, tail[:len(tail)-1]
	} else if strings.ContainsAny(path, " \t") || !strings.Contains(path, "/") {
		return false // nothing that says that this is a file
	}
	if !ok || path == "" {
		return false
	}
	place := &Place{Path: path, Offset: v} // in an image that is not relocated the address says all
	if inside != "" {
		plus := strings.LastIndexAny(inside, "+-")
		if plus < 0 {
			return false
		}
		if place.Offset, ok = parse0x(inside[plus+1:]); !ok {
			return false
		}
		if inside[plus] == '-' {
			place.Offset = -place.Offset
		}
		place.Symbol = inside[:plus]
	}
	l.kind, l.after = frameLine, lead+len(body)
	l.frame = Frame{Address: v, Kind: Return, Place: place}
	if isTrampoline(place.Symbol) {
		l.frame.Kind = Signal
	}
	return true
}

// kernel reads "[<ffffffff81234567>] f+0x1f/0x40", with or without a time before it.
func (l *line) kernel(body string, lead int) bool {
	at := strings.Index(body, "[<")
	if at < 0 || strings.Trim(body[:at], "[]0123456789. ?") != "" {
		return false
	}
	word, _, ok := strings.Cut(body[at+2:], ">]")
	v, valid := parseHex(word)
	if !ok || !valid {
		return false
	}
	l.kind, l.after = frameLine, lead+at+2+len(word)+2
	l.frame = Frame{Address: v, Kind: Return}
	return true
}

// header reads the lines that start threads, and images in the simple form.
func (l *line) header(body string, _ int) bool {
	first, rest, _ := strings.Cut(body, " ")
	switch first {
	case "image":
		return l.simpleImage(rest)
	case "thread", "Thread":
		l.kind = threadLine
		word, after, _ := strings.Cut(strings.TrimLeft(rest, " #"), " ")
		l.tid = strings.TrimRight(word, ":,")
		l.name = strings.Trim(after, " :\r")
		return leadingDigits(l.tid) == len(l.tid) && l.tid != ""
	case "Stack": // systemd
		word, ok := strings.CutPrefix(body, "Stack trace of thread ")
		l.kind, l.tid = threadLine, strings.TrimRight(word, ":\r")
		return ok && l.tid != "" && leadingDigits(l.tid) == len(l.tid)
	case "Module":
		path, id, ok1 := strings.Cut(strings.TrimRight(rest, "\r"), " with build-id ")
		id, ok2 := parseID(id)
		l.kind, l.image = moduleLine, Image{Path: path, ID: id}
		return ok1 && ok2 && id != "" && path != ""
	case "Incident", "Process:", "Analysis":
		if strings.HasPrefix(body, "Incident Identifier:") || first == "Process:" || strings.HasPrefix(body, "Analysis of sampling") {
			l.kind = reportLine
			return true
		}
	case "Binary":
		if strings.HasPrefix(body, "Binary Images:") {
			l.kind = imagesLine
			return true
		}
	}
	return false
}

// simpleImage reads "LOAD SIZE ID PATH".
func (l *line) simpleImage(rest string) bool {
	words := strings.SplitN(rest, " ", 4)
	if len(words) < 3 {
		return false
	}
	load, ok1 := parse0x(words[0])
	size, ok2 := parseNumber(words[1])
	id, ok3 := parseID(words[2])
	l.image = Image{Load: load, Size: size, ID: id}
	if words[1] == "-" {
		ok2 = true
	}
	if words[2] == "-" {
		l.image.ID, ok3 = "", true
	}
	if len(words) == 4 {
		l.image.Path = strings.TrimRight(words[3], " \r")
	}
	l.kind = imageLine
	return ok1 && ok2 && ok3 && (l.image.Path != "" || l.image.ID != "")
}

// maps reads a line of /proc/PID/maps.
func (l *line) maps(body string, _ int) (ok bool) {
	l.kind = mappingLine
	l.mapping, ok = parseMapping(strings.TrimRight(body, "\r"))
	return ok
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// wordEnd is the length of the letters and digits that s starts with.
func wordEnd(s string) int {
	n := 0
	for n < len(s) && isWord(s[n]) {
		n++
	}
	return n
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func cutLast(s, sep string) (before, after string, ok bool) {
	k := strings.LastIndex(s, sep)
	if k < 0 {
		return s, "", false
	}
	return s[:k], s[k+len(sep):], true
}
