package crash

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/callreel/callreel/symbols/symbolize"
)

// Android writes a tombstone in text and, since version 12, in protobuf beside it. Numbers of
// fields are those of debuggerd's tombstone.proto.

// protoArchs are ABI names, by the number of the enumeration Architecture.
var protoArchs = []string{"arm", "arm64", "x86", "x86_64", "riscv64"}

// isTombstoneProto says whether a file is a tombstone in protobuf, which begins with nothing of
// its own: its fields must all be of the right kind, with a process, a signal or a fingerprint,
// and threads.
func isTombstoneProto(data []byte) bool {
	if len(data) == 0 || data[0] != 0x08 && data[0] != 0x12 { // the architecture, or the fingerprint
		return false
	}
	m := fields{rest: data}
	var pid, threads bool
	for {
		f, ok := m.next()
		if !ok {
			return !m.damaged && pid && threads
		}
		switch f.number {
		case 1, 5, 6, 7, 20, 22, 23, 24: // numbers
			if f.wire != protowire.VarintType {
				return false
			}
			pid = pid || f.number == 5
		case 2, 3, 4, 8, 9, 14: // text
			if f.wire != protowire.BytesType || !utf8.Valid(f.bytes) {
				return false
			}
		case 10, 15, 16, 17, 18, 19, 21, 25, 26: // messages
			if f.wire != protowire.BytesType {
				return false
			}
			threads = threads || f.number == 16
		}
	}
}

// readTombstoneProto reads a tombstone in protobuf into what its text would be read into.
func readTombstoneProto(name string, data []byte) (*Report, error) {
	r := &Report{Format: TombstoneProto, OS: "android"}
	b := &tombstone{report: r, images: map[[2]string]*Image{}}
	arch, tid := uint64(0), uint64(0)
	var command []string
	var threads [][]byte
	m := fields{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch f.number {
		case 1:
			arch = f.value
		case 2:
			r.Version = string(f.bytes)
		case 4:
			r.Time = string(f.bytes)
		case 5:
			r.Process.PID = int(int32(f.value))
		case 6:
			tid = f.value
		case 9:
			if len(command) < 64 {
				command = append(command, string(f.bytes))
			}
		case 10:
			r.Reason = protoSignal(f.bytes)
		case 14:
			r.detail("Abort message: '" + string(f.bytes) + "'")
		case 15:
			cause := fields{rest: f.bytes}
			if c, ok := cause.next(); ok && c.number == 1 {
				r.detail("Cause: " + string(c.bytes))
			}
		case 16:
			if len(threads) < maxThreads {
				threads = append(threads, f.bytes)
			}
		}
	}
	if arch < uint64(len(protoArchs)) {
		r.setArch(protoArchs[arch])
	}
	if len(command) > 0 {
		r.Process.Name, r.Process.Path = command[0], strings.Join(command, " ")
	}
	for _, entry := range threads {
		e := fields{rest: entry}
		id := uint64(0)
		for f, ok := e.next(); ok; f, ok = e.next() {
			switch f.number {
			case 1:
				id = f.value
			case 2:
				b.protoThread(f.bytes, id, id == tid)
			}
		}
	}
	if len(r.Threads) == 0 {
		return nil, fmt.Errorf("crash: %s: %w: it has no thread", name, ErrDamaged)
	}
	slices.SortStableFunc(r.Threads, func(a, b *Thread) int { return int(int64(a.TID) - int64(b.TID)) })
	r.Reason.text()
	r.crashedFirst()
	return r, nil
}

// maxDetails bounds what is told of a reason.
const maxDetails = 64

// detail adds to what is told of the reason.
func (r *Report) detail(text string) {
	if len(r.Reason.Details) < maxDetails {
		r.Reason.Details = append(r.Reason.Details, text)
	}
}

// protoSignal reads the message Signal.
func protoSignal(data []byte) Reason {
	var why Reason
	m := fields{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch f.number {
		case 2:
			why.Signal = string(f.bytes)
		case 4:
			why.Code = string(f.bytes)
		case 8:
			why.Has = f.value != 0
		case 9:
			why.Address = f.value
		}
	}
	return why
}

// protoThread reads the message Thread.
func (b *tombstone) protoThread(data []byte, id uint64, crashed bool) {
	t := &Thread{TID: id, Crashed: crashed}
	var near codeBytes
	m := fields{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch f.number {
		case 2:
			t.Name = string(f.bytes)
		case 3:
			if reg, ok := protoRegister(f.bytes); ok && len(t.Registers) < 128 {
				t.Registers = append(t.Registers, reg)
			}
		case 4:
			if len(t.raw) < maxRaw {
				t.raw = append(t.raw, b.protoFrame(f.bytes))
			}
		case 5:
			if register, memory := protoMemory(f.bytes); pcNames[register] {
				near = memory
			}
		}
	}
	orderRegisters(t.Registers)
	b.report.Threads = append(b.report.Threads, t)
	b.report.codeNear(t, near)
}

// protoRegister reads the message Register.
func protoRegister(data []byte) (Register, bool) {
	var reg Register
	m := fields{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch f.number {
		case 1:
			reg.Name = string(f.bytes)
		case 2:
			reg.Value = f.value
		}
	}
	return reg, reg.Name != "" && len(reg.Name) < 16
}

// protoFrame reads the message BacktraceFrame.
func (b *tombstone) protoFrame(data []byte) rawFrame {
	raw := rawFrame{kind: symbolize.Exact}
	var file, id string
	pc := uint64(0)
	m := fields{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch f.number {
		case 1:
			raw.addr = f.value
		case 2:
			pc = f.value
		case 4:
			raw.function = string(f.bytes)
		case 5:
			raw.offset = f.value
		case 6:
			file = string(f.bytes)
		case 8:
			id = buildID(string(f.bytes))
		}
	}
	switch {
	case file == "" || file == "<unknown>" || strings.HasPrefix(file, "<anonymous"):
		raw.addr = pc
	default:
		raw.image = b.image(file, id)
	}
	return raw
}

// buildID returns a build ID in lower case, "" for what is none.
func buildID(text string) string {
	id := strings.ToLower(text)
	if strings.Trim(id, "0123456789abcdef") != "" || len(id) > 256 {
		return ""
	}
	return id
}

// protoMemory reads the message MemoryDump: memory near a register.
func protoMemory(data []byte) (register string, memory codeBytes) {
	m := fields{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch f.number {
		case 1:
			register = string(f.bytes)
		case 3:
			memory.start = f.value
		case 4:
			memory.data = f.bytes
		}
	}
	return register, memory
}

// pcNames are what processors call the program counter.
var pcNames = map[string]bool{"pc": true, "rip": true, "eip": true}

// codeNear takes memory near the PC for the code of the crashed thread, at the link addresses that
// its frames have.
func (r *Report) codeNear(t *Thread, near codeBytes) {
	if !t.Crashed || len(t.raw) == 0 || len(near.data) == 0 {
		return
	}
	for _, reg := range t.Registers {
		if pcNames[reg.Name] && reg.Value >= near.start && reg.Value-near.start < uint64(len(near.data)) {
			r.bytes = &codeBytes{near.start - reg.Value + t.raw[0].addr, near.data}
		}
	}
}
