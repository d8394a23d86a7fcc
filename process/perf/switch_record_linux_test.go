package perf

import (
	"encoding/binary"
	"testing"
)

// record makes one with a header and words.
func switchRecord(kind Type, misc uint16, words ...uint64) []byte {
	b := make([]byte, headerSize)
	binary.NativeEndian.PutUint32(b, uint32(kind))
	binary.NativeEndian.PutUint16(b[4:], misc)
	binary.NativeEndian.PutUint16(b[6:], uint16(headerSize+8*len(words)))
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

func TestSwitchRecordsAreDecoded(t *testing.T) {
	const pidTID = 7 | 8<<32
	for name, c := range map[string]struct {
		data []byte
		want SwitchRecord
	}{
		"in":                             {switchRecord(Switch, 0, pidTID, 99), SwitchRecord{Type: Switch, PID: 7, TID: 8, Time: 99}},
		"out":                            {switchRecord(Switch, 1<<13, pidTID, 99), SwitchRecord{Type: Switch, PID: 7, TID: 8, Time: 99, Out: true}},
		"preempted":                      {switchRecord(Switch, 3<<13, pidTID, 99), SwitchRecord{Type: Switch, PID: 7, TID: 8, Time: 99, Out: true, Preempted: true}},
		"fork":                           {switchRecord(Fork, 0, 7|5<<32, 8|6<<32, 1, pidTID, 99), SwitchRecord{Type: Fork, PID: 7, ParentPID: 5, TID: 8, ParentTID: 6, Time: 99}},
		"exit":                           {switchRecord(Exit, 0, 7|5<<32, 8|6<<32, 1, pidTID, 99), SwitchRecord{Type: Exit, PID: 7, ParentPID: 5, TID: 8, ParentTID: 6, Time: 99}},
		"exec":                           {switchRecord(Comm, 1<<13, pidTID, 'a', pidTID, 99), SwitchRecord{Type: Comm, PID: 7, TID: 8, Time: 99, Exec: true}},
		"major":                          {switchRecord(Sample, 0, pidTID, 99, 0x1000), SwitchRecord{Type: Sample, PID: 7, TID: 8, Time: 99, Address: 0x1000, Major: true}},
		"minor":                          {switchRecord(Sample, 0, pidTID, 99, 0x1000, 1), SwitchRecord{Type: Sample, PID: 7, TID: 8, Time: 99, Address: 0x1000}},
		"lost":                           {switchRecord(Lost, 0, 1, 23, pidTID, 99), SwitchRecord{Type: Lost, Count: 23, Time: 99}},
		"lost, of a minor fault's event": {switchRecord(Lost, 0, 1, 23, pidTID, 99, 1), SwitchRecord{Type: Lost, Count: 23, Time: 99}},
	} {
		t.Run(name, func(t *testing.T) {
			var got SwitchRecord
			if err := got.Decode(c.data); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
			for n := range c.data { // cut short
				_ = got.Decode(c.data[:n])
			}
		})
	}
}

func FuzzSwitchRecord(f *testing.F) {
	f.Add(switchRecord(Fork, 0, 1, 2, 3, 4, 5))
	f.Add(switchRecord(Lost, 0, 1, 2, 3, 4, 5))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r SwitchRecord
		_ = r.Decode(data)
		ring := SwitchRing{cpuRing: cpuRing{ring: ring{data: make([]byte, 64)}}, head: 64}
		copy(ring.data, data)
		for n := 0; ; n++ {
			record := ring.Peek()
			if record == nil {
				break
			}
			ring.Skip(record)
			if n > 64/headerSize {
				t.Fatal("more records than there is room for")
			}
		}
	})
}
