package past

import (
	"encoding/binary"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// What events carry is kept behind one another: how far the event is from the one before that carries something, the event with its target's
// function ID, how many bytes there are, and these.

// appendPayloads appends those of a run, whose events begin at place first of the chunk. last is the place of the one before.
func appendPayloads(b []byte, run *ring.Run, first, last int) ([]byte, int) {
	for _, p := range run.Payloads {
		e := &run.Events[p.Event]
		at := first + p.Event
		b = binary.AppendUvarint(b, uint64(at-last))
		b = binary.LittleEndian.AppendUint64(b, e.Time)
		b = binary.LittleEndian.AppendUint32(b, e.SP)
		b = binary.LittleEndian.AppendUint32(b, e.Word)
		b = binary.AppendUvarint(b, uint64(len(p.Data)))
		b = append(b, p.Data...)
		last = at
	}
	return b, last
}

// eachPayload calls f for each. The data are valid as long as b.
func eachPayload(b []byte, f func(at int, e reel.Event, data []byte)) {
	at := 0
	for len(b) > 0 {
		d, n := binary.Uvarint(b)
		b = b[n:]
		at += int(d)
		e := reel.Event{Time: binary.LittleEndian.Uint64(b), SP: binary.LittleEndian.Uint32(b[8:]), Word: binary.LittleEndian.Uint32(b[12:])}
		size, n := binary.Uvarint(b[16:])
		b = b[16+n:]
		f(at, e, b[:size:size])
		b = b[size:]
	}
}
