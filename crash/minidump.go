package crash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/callreel/callreel/unwind"
)

// Minidump is the format of Windows, which Breakpad and Crashpad write on all systems.
const Minidump Format = "minidump"

// The types of streams that are read (minidumpapiset.h, MINIDUMP_STREAM_TYPE; Breakpad's
// minidump_format.h for those of Linux).
const (
	streamThreads       = 3
	streamModules       = 4
	streamMemory        = 5
	streamException     = 6
	streamSystem        = 7
	streamMemory64      = 9
	streamMisc          = 15
	streamMemoryInfo    = 16
	streamThreadNames   = 24
	streamBreakpadInfo  = 0x47670001
	streamAssertion     = 0x47670002
	streamLinuxStatus   = 0x47670004
	streamLinuxRelease  = 0x47670005
	streamLinuxMaps     = 0x47670009
	streamCrashpadInfo  = 0x43500001
	maxMinidumpStreams  = 4096
	minidumpHeaderSize  = 32
	minidumpThreadSize  = 48
	minidumpModuleSize  = 108
	minidumpContextSize = 1 << 16 // no context is larger
	maxMinidumpModules  = 1 << 16
	maxMinidumpThreads  = 1 << 16
)

// isMinidump says whether a file begins like a minidump.
func isMinidump(start []byte) bool {
	return len(start) >= minidumpHeaderSize && string(start[:4]) == "MDMP" && binary.LittleEndian.Uint16(start[4:]) == 0xa793
}

// minidump is one that is being read.
type minidump struct {
	*source
	report  *Report
	streams map[uint32]location
	names   map[uint32]string

	platform, processor uint32
	context             *contextLayout
	parts               []stored
	unnamed             []minidumpThread
	moduleNames         []string // in the order of the list
	annotated           int      // bytes of annotations
}

// location is a part of the file (MINIDUMP_LOCATION_DESCRIPTOR).
type location struct{ size, rva uint32 }

func locationAt(b []byte) location {
	return location{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}
}

// readMinidump reads a minidump. What is damaged is told in Problems, unless nothing is left.
func readMinidump(name string, r io.ReaderAt, size int64) (*Report, error) {
	d := &minidump{source: &source{name, r, uint64(size)}, names: map[uint32]string{}, streams: map[uint32]location{}}
	d.report = &Report{Format: Minidump}
	if err := d.directory(); err != nil {
		return nil, err
	}
	if err := d.system(); err != nil {
		return nil, err
	}
	for _, step := range []func() error{d.misc, d.modules, d.threads, d.threadNames, d.memory, d.memory64, d.mappings, d.exception, d.assertion, d.requesting,
		d.release, d.annotations} {
		if err := step(); err != nil {
			d.report.problem("%w", err)
		}
	}
	var lost uint64
	d.report.memory, lost = newFileMemory(d.source, d.parts)
	if lost > 0 {
		d.report.problem("%s: it is cut off: %d bytes of memory are missing", name, lost)
	}
	if len(d.report.Threads) == 0 {
		err := fmt.Errorf("crash: %s: %w: it has no thread", name, ErrDamaged)
		for _, p := range d.report.Problems {
			err = fmt.Errorf("%w; %w", err, p)
		}
		return nil, err
	}
	d.report.stripSignatures()
	d.report.crashedFirst()
	return d.report, nil
}

// directory reads the header and the list of streams.
func (d *minidump) directory() error {
	h, err := d.part(0, minidumpHeaderSize, "the header")
	if err != nil {
		return err
	}
	if !isMinidump(h) {
		return fmt.Errorf("crash: %s: %w", d.name, ErrUnknownFormat)
	}
	d.when(binary.LittleEndian.Uint32(h[20:]))
	count, rva := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
	if count > maxMinidumpStreams {
		d.report.problem("%s: %d streams are listed, only %d are read", d.name, count, maxMinidumpStreams)
		count = maxMinidumpStreams
	}
	list, err := d.part(uint64(rva), uint64(count)*12, "the list of streams")
	if err != nil {
		return err
	}
	for ; len(list) > 0; list = list[12:] {
		kind := binary.LittleEndian.Uint32(list)
		if _, twice := d.streams[kind]; kind != 0 && !twice {
			d.streams[kind] = locationAt(list[4:])
		}
	}
	return nil
}

// stream returns the bytes of a stream, nil when there is none.
func (d *minidump) stream(kind uint32, what string) ([]byte, error) {
	at, ok := d.streams[kind]
	if !ok {
		return nil, nil
	}
	return d.part(uint64(at.rva), uint64(at.size), what)
}

// list reads a stream that is a count and entries of one size. Some writers put four bytes
// between, to align them.
func (d *minidump) list(kind uint32, entry, most int, what string) ([]byte, int, error) {
	b, err := d.stream(kind, what)
	if err != nil || b == nil {
		return nil, 0, err
	}
	if len(b) < 4 {
		return nil, 0, fmt.Errorf("crash: %s: %w: %s has %d bytes", d.name, ErrDamaged, what, len(b))
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if uint64(len(b)) == count*uint64(entry)+4 {
		b = b[4:]
	}
	if have := uint64(len(b) / entry); count > have {
		d.report.problem("%s: %s: %d entries are listed, %d are there", d.name, what, count, have)
		count = have
	}
	if count > uint64(most) {
		d.report.problem("%s: %s: %d entries are listed, only %d are read", d.name, what, count, most)
		count = uint64(most)
	}
	return b, int(count), nil
}

// maxName bounds names, in bytes of UTF-16.
const maxName = 8192

// text reads a MINIDUMP_STRING: its size in bytes and UTF-16.
func (d *minidump) text(rva uint32) string {
	if rva == 0 {
		return ""
	}
	if was, ok := d.names[rva]; ok {
		return was
	}
	name := ""
	if head, err := d.part(uint64(rva), 4, "the size of a name"); err == nil {
		if b, err := d.part(uint64(rva)+4, uint64(min(binary.LittleEndian.Uint32(head), maxName)), "a name"); err == nil {
			name = utf16Text(b)
		}
	}
	d.names[rva] = name
	return name
}

// Processors and platforms (MINIDUMP_SYSTEM_INFO; Breakpad's minidump_format.h).
const (
	processorI386     = 0
	processorAMD64    = 9
	processorARM64    = 12
	processorARM64Old = 0x8003
	platformMac       = 0x8101
	platformIOS       = 0x8102
	platformLinux     = 0x8201
	platformAndroid   = 0x8203
)

// system reads what the dump is of. Nothing can be understood without.
func (d *minidump) system() error {
	b, err := d.stream(streamSystem, "the system")
	if err != nil {
		return err
	}
	if len(b) < 32 {
		return fmt.Errorf("crash: %s: %w: nothing says what system it is of", d.name, ErrDamaged)
	}
	le := binary.LittleEndian
	d.processor, d.platform = uint32(le.Uint16(b)), le.Uint32(b[20:])
	r := d.report
	switch d.platform {
	case platformLinux:
		r.OS = "linux"
	case platformAndroid:
		r.OS = "android"
	case platformMac:
		r.OS = "macos"
	case platformIOS:
		r.OS = "ios"
	case 1, 2, 3:
		r.OS = "windows"
	default:
		r.OS = fmt.Sprintf("platform %#x", d.platform)
	}
	r.Version = fmt.Sprintf("%d.%d.%d", le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:]))
	if more := d.text(le.Uint32(b[24:])); more != "" {
		r.Version += " " + more
	}
	switch d.processor {
	case processorI386:
		r.arch, d.context = unwind.I386, contextI386
	case processorAMD64:
		r.arch, d.context = unwind.AMD64, contextAMD64
	case processorARM64, processorARM64Old:
		r.arch, d.context = unwind.ARM64, contextARM64
	default:
		r.Arch = fmt.Sprintf("processor %#x", d.processor)
		r.problem("%s: stacks of %s can't be walked", d.name, r.Arch)
		return nil
	}
	r.Arch = r.arch.String()
	return nil
}

// misc reads the process's number, and its name from Linux' status.
func (d *minidump) misc() error {
	b, err := d.stream(streamMisc, "MINIDUMP_MISC_INFO")
	if err == nil && len(b) >= 12 && binary.LittleEndian.Uint32(b[4:])&1 != 0 {
		d.report.Process.PID = int(int32(binary.LittleEndian.Uint32(b[8:])))
	}
	status, statusErr := d.stream(streamLinuxStatus, "/proc/PID/status")
	if statusErr == nil {
		for line := range bytes.Lines(status) {
			if key, value, ok := bytes.Cut(line, []byte(":")); ok {
				switch value := string(bytes.TrimSpace(value)); string(key) {
				case "Name":
					d.report.Process.Name = value
				case "Pid":
					if pid, ok := wholeNumber(value); ok && d.report.Process.PID == 0 {
						d.report.Process.PID = int(pid)
					}
				}
			}
		}
	}
	return err
}

// assertion reads Breakpad's note of a failed assertion: expression, function and file, each of
// 128 units of UTF-16, and the line.
func (d *minidump) assertion() error {
	b, err := d.stream(streamAssertion, "the assertion")
	if err != nil || len(b) < 776 {
		return err
	}
	text := fmt.Sprintf("assertion failed: %s in %s at %s:%d", utf16Text(b[:256]), utf16Text(b[256:512]), utf16Text(b[512:768]), binary.LittleEndian.Uint32(b[768:]))
	d.report.Reason.Details = append(d.report.Reason.Details, text)
	return nil
}
