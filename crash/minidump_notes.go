package crash

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// An Annotation is what a program told its crash reporter about itself.
type Annotation struct {
	Module string // base name of the image that it is of, "" for the whole process
	Name   string
	Value  string
}

// Bounds of annotations.
const (
	maxAnnotations     = 4096
	maxAnnotationBytes = 64 << 10 // of one
	maxAnnotationsKept = 1 << 20  // of all, in bytes
)

// when tells the time of the report, which the header has in seconds since 1970.
func (d *minidump) when(seconds uint32) {
	if seconds != 0 {
		d.report.Time = time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
	}
}

// requesting marks the thread that asked for a dump of a process that didn't crash
// (MINIDUMP_BREAKPAD_INFO: which numbers are valid, the dumping thread, and the requesting one).
func (d *minidump) requesting() error {
	b, err := d.stream(streamBreakpadInfo, "MDRawBreakpadInfo")
	if err != nil || len(b) < 12 || d.streams[streamException] != (location{}) {
		return err
	}
	le := binary.LittleEndian
	if le.Uint32(b)&2 == 0 {
		return nil
	}
	tid := uint64(le.Uint32(b[8:]))
	for k, t := range d.report.Threads {
		if t.TID == tid && k > 0 {
			copy(d.report.Threads[1:], d.report.Threads[:k])
			d.report.Threads[0] = t
			break
		}
	}
	if d.report.Reason.Text == "" {
		d.report.Reason.Text = fmt.Sprintf("no crash: thread %d asked for the dump", tid)
	}
	return nil
}

// release reads what Breakpad copies of /etc/lsb-release.
func (d *minidump) release() error {
	b, err := d.stream(streamLinuxRelease, "/etc/lsb-release")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DISTRIB_DESCRIPTION="); ok {
			d.report.Version += " " + strings.Trim(name, `"`)
		}
	}
	return nil
}

// annotations reads MinidumpCrashpadInfo (Crashpad, minidump/minidump_extensions.h): a version, two
// UUIDs, where the process's annotations are, and where those of its modules.
func (d *minidump) annotations() error {
	b, err := d.stream(streamCrashpadInfo, "MinidumpCrashpadInfo")
	if err != nil || len(b) < 52 {
		return err
	}
	if err := d.dictionary("", locationAt(b[36:])); err != nil {
		return err
	}
	modules, count, err := d.counted(locationAt(b[44:]), 12, "the annotations of modules")
	for ; count > 0 && err == nil; modules, count = modules[12:], count-1 {
		name := ""
		if k := binary.LittleEndian.Uint32(modules); int64(k) < int64(len(d.moduleNames)) {
			name = d.moduleNames[k]
		}
		err = d.moduleAnnotations(name, locationAt(modules[4:]))
	}
	return err
}

// moduleAnnotations reads MinidumpModuleCrashpadInfo: a version, a list of texts, a dictionary,
// and objects with a name, a type and a value each.
func (d *minidump) moduleAnnotations(module string, at location) error {
	if at.size < 28 {
		return nil
	}
	b, err := d.part(uint64(at.rva), 28, "the annotations of a module")
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	list, count, err := d.counted(locationAt(b[4:]), 4, "the texts of a module")
	for ; count > 0 && err == nil; list, count = list[4:], count-1 {
		var text string
		if text, err = d.utf8Text(le.Uint32(list)); err == nil {
			d.annotate(module, "", text)
		}
	}
	if err != nil {
		return err
	}
	if err := d.dictionary(module, locationAt(b[12:])); err != nil {
		return err
	}
	objects, count, err := d.counted(locationAt(b[20:]), 12, "the annotations of a module")
	for ; count > 0 && err == nil; objects, count = objects[12:], count-1 {
		const kindString = 1
		if le.Uint16(objects[4:]) != kindString {
			continue // of types that the program alone knows
		}
		var name, value string
		if name, err = d.utf8Text(le.Uint32(objects)); err != nil {
			break
		}
		if value, err = d.utf8Text(le.Uint32(objects[8:])); err == nil {
			d.annotate(module, name, value)
		}
	}
	return err
}

// dictionary reads MinidumpSimpleStringDictionary.
func (d *minidump) dictionary(module string, at location) error {
	b, count, err := d.counted(at, 8, "the annotations")
	for ; count > 0 && err == nil; b, count = b[8:], count-1 {
		var name, value string
		if name, err = d.utf8Text(binary.LittleEndian.Uint32(b)); err != nil {
			break
		}
		if value, err = d.utf8Text(binary.LittleEndian.Uint32(b[4:])); err == nil {
			d.annotate(module, name, value)
		}
	}
	return err
}

func (d *minidump) annotate(module, name, value string) {
	size := len(module) + len(name) + len(value)
	if len(d.report.Annotations) < maxAnnotations && d.annotated+size <= maxAnnotationsKept {
		d.annotated += size
		d.report.Annotations = append(d.report.Annotations, Annotation{module, name, value})
	}
}

// counted reads a count and so many entries at a place of the file.
func (d *minidump) counted(at location, entry uint64, what string) ([]byte, uint64, error) {
	if at.size < 4 {
		return nil, 0, nil
	}
	head, err := d.part(uint64(at.rva), 4, what)
	if err != nil {
		return nil, 0, err
	}
	count := min(uint64(binary.LittleEndian.Uint32(head)), maxAnnotations)
	b, err := d.part(uint64(at.rva)+4, count*entry, what)
	return b, count, err
}

// utf8Text reads a MinidumpUTF8String: its size in bytes, and these.
func (d *minidump) utf8Text(rva uint32) (string, error) {
	head, err := d.part(uint64(rva), 4, "the size of a text")
	if err != nil {
		return "", err
	}
	b, err := d.part(uint64(rva)+4, min(uint64(binary.LittleEndian.Uint32(head)), maxAnnotationBytes), "a text")
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(b), "\x00")
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return text, nil
}
