package waiting

import (
	"os"
	"testing"

	"github.com/callreel/callreel/reel"
)

// Whatever is in a file, stretches are in order and what was done in them lies in them.
func FuzzFind(f *testing.F) {
	waiter, holder := contendedPrograms(true, plainUnlock)
	for _, wakeUps := range []bool{true, false} {
		file := write(f, reel.Header{}, wakeUps, true, waiter, holder)
		data, err := os.ReadFile(file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	waits, other := explained()
	data, err := os.ReadFile(write(f, reel.Header{}, false, false, waits, other).Name())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := reel.Parse("fuzz.reel", data)
		if err != nil {
			return
		}
		defer file.Close()
		list, _ := Find(file, Options{Most: 1000})
		for i := range list {
			s := &list[i]
			if s.To <= s.From || i > 0 && byThread(list[i-1], *s) > 0 || len(s.Holders) > maxHolders || s.Waker == s.Thread {
				t.Fatalf("%+v", s)
			}
			for _, h := range s.Holders {
				if h.From < s.From || h.To > s.To || h.To < h.From || h.Held > h.To-h.From || len(h.In) > maxIn {
					t.Fatalf("%+v in %+v", h, s)
				}
			}
		}
		for _, l := range SumLocks(file, list) {
			if l.Worst > l.Waited || l.Unknown > l.Waited {
				t.Fatalf("%+v", l)
			}
		}
	})
}
