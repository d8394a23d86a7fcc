package crash

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// CoredumpText is what systemd-coredump says of a crash, in the journal and in coredumpctl info.
const CoredumpText Format = "systemd-coredump"

// isCoredumpText says whether text holds its stacks.
func isCoredumpText(text string) bool { return strings.Contains(text, "Stack trace of thread ") }

// readCoredumpText reads stacks line by line:
//
//	Process 512 (prog) of user 1000 dumped core.
//	Module libc.so.6 from deb glibc-2.36 with build-id 93ac…
//	Stack trace of thread 512:
//	#0  0x00007f2d05e2a8 raise (libc.so.6 + 0x3c2a8)
//	#1  0x0000000000401136 n/a (/usr/bin/prog + 0x1136)
func readCoredumpText(name, text string) (*Report, error) {
	r := &Report{Format: CoredumpText, OS: "linux"}
	ids := map[string]string{}
	images := map[string]*Image{}
	var t *Thread
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		// The journal puts time, host and unit before the first line of a message.
		if at := strings.Index(line, "Stack trace of thread "); at >= 0 {
			if tid, err := strconv.ParseUint(strings.Trim(line[at+len("Stack trace of thread "):], ": "), 10, 32); err == nil && len(r.Threads) < maxThreads {
				t = &Thread{TID: tid, Crashed: len(r.Threads) == 0}
				r.Threads = append(r.Threads, t)
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, "#") && t != nil && len(t.raw) < maxRaw:
			t.coredumpFrame(line, func(file string) *Image {
				im := images[file]
				if im == nil && len(images) < maxImages {
					im = &Image{Path: file, linked: true}
					images[file] = im
				}
				return im
			})
		default:
			r.coredumpHead(line, ids)
		}
	}
	if len(r.Threads) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no thread", name, ErrUnknownFormat)
	}
	for _, file := range slices.Sorted(maps.Keys(images)) {
		im := images[file]
		im.ID = ids[file[strings.LastIndexByte(file, '/')+1:]]
		r.Images = append(r.Images, im)
	}
	r.Reason.text()
	return r, nil
}

// coredumpHead reads what stands before the stacks.
func (r *Report) coredumpHead(line string, ids map[string]string) {
	if at := strings.Index(line, "Process "); at >= 0 && strings.HasSuffix(line, "dumped core.") {
		pid, rest, _ := strings.Cut(line[at+len("Process "):], " ")
		r.Process.PID, _ = strconv.Atoi(pid) // 0 when it is none
		if open, end := strings.IndexByte(rest, '('), strings.IndexByte(rest, ')'); open >= 0 && end > open {
			r.Process.Name = rest[open+1 : end]
		}
		return
	}
	if rest, ok := strings.CutPrefix(line, "Module "); ok {
		before, id, ok := strings.Cut(rest, " with build-id ")
		if !ok {
			before, id, ok = strings.Cut(rest, " with build-ID ")
		}
		file, _, _ := strings.Cut(before, " ")
		id = strings.ToLower(strings.TrimSuffix(id, "."))
		if ok && len(ids) < maxImages && len(id) <= 256 && strings.Trim(id, "0123456789abcdef") == "" {
			ids[file[strings.LastIndexByte(file, '/')+1:]] = id
		}
		return
	}
	key, value, _ := strings.Cut(line, ": ")
	value = strings.TrimSpace(value)
	switch key { // coredumpctl info
	case "PID":
		pid, name, _ := strings.Cut(value, " ")
		r.Process.PID, _ = strconv.Atoi(pid) // 0 when it is none
		r.Process.Name = strings.Trim(name, "()")
	case "Executable":
		r.Process.Path = value
	case "Signal":
		if _, name, ok := strings.Cut(value, "("); ok {
			r.Reason.Signal = "SIG" + strings.TrimSuffix(name, ")")
		}
	}
}

// coredumpFrame reads one frame; n/a stands for no name. The address of the first is exact.
func (t *Thread) coredumpFrame(line string, image func(file string) *Image) {
	_, rest, ok := strings.Cut(line, " ")
	word, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	addr, ok2 := parseHex(word)
	if !ok || !ok2 {
		return
	}
	raw := rawFrame{addr: addr}
	open := strings.LastIndex(rest, " (")
	if open < 0 {
		t.raw = append(t.raw, raw)
		return
	}
	if raw.function = strings.TrimSpace(rest[:open]); raw.function == "n/a" {
		raw.function = ""
	}
	file, off, ok := strings.Cut(strings.TrimSuffix(rest[open+2:], ")"), " + ")
	if v, valid := parseHex(off); ok && valid && file != "n/a" && file != "" {
		raw.addr, raw.image = v, image(file) // an address in the file, as all of its images
	}
	t.raw = append(t.raw, raw)
}
