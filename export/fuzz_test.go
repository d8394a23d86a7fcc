package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"github.com/callreel/callreel/reel"
)

// bounded takes so many bytes and then fails.
type bounded struct {
	bytes.Buffer
	room int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}

// Whatever a reel holds, exports are valid files.
func FuzzExport(f *testing.F) {
	for _, mode := range []reel.ClockMode{reel.ClockFull, reel.ClockNone} {
		for _, goroutines := range []bool{false, true} {
			file := recordAs(f, reel.Header{Goroutines: goroutines, Clock: reel.Clock{Mode: mode}}, []string{"a", "\xff\"", "runtime.goexit1"}, func(w *reel.Writer) {
				appendTo(f, w, reel.Thread{TID: 5, Name: "t"}, reel.Entry(1001, base, 1), reel.Switch(1010, 7), reel.Entry(1011, base, 2), reel.Entry(1012, base-64<<20, 3),
					reel.Switch(1015, 8), reel.Exit(1020, base, 2))
				tw := appendTo(f, w, reel.Thread{TID: 5}, reel.Switch(1014, 7), reel.Entry(1021, base-64, 1), reel.Exit(1030, base-64, 1))
				err := tw.Dropped(1, 1, 1025)
				if err == nil && !goroutines {
					err = w.Dump(reel.Dump{From: 1012, To: 1040, Missing: []reel.Missing{{Thread: 2, From: 1012, To: 1014}},
						Triggers: []reel.Trigger{{Condition: "a > 1", Function: 1, Thread: 2, Start: 1021, End: 1030}, {Kind: reel.TriggerEnd, Detail: "\xff"}}})
				}
				if err != nil {
					f.Fatal(err)
				}
			})
			data, err := os.ReadFile(file.Name())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, file := range []*reel.File{
		scheduled(f, 3, 100, reel.Header{}), hostileStates(f),
		marked(f), markedAtRandom(f, marking{threads: 2, marks: 200, calls: true}), markedAtRandom(f, marking{threads: 2, marks: 100, goroutines: true}),
	} {
		data, err := os.ReadFile(file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := reel.Parse("fuzz", data)
		if err != nil {
			return
		}
		for format, write := range exporters {
			out := &bounded{room: 4 << 20}
			if err := write(context.Background(), file, out, Options{TempDir: t.TempDir()}); errors.Is(err, io.ErrShortWrite) {
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			switch format {
			case "json", "speedscope":
				if !json.Valid(out.Bytes()) || !utf8.Valid(out.Bytes()) {
					t.Errorf("%s: not JSON: %q", format, out.Bytes())
				}
			case "pb.gz":
				if _, err := profile.Parse(&out.Buffer); err != nil && !strings.Contains(err.Error(), "empty") {
					t.Errorf("pprof: %v", err)
				}
			}
		}
		_ = ChromeSplit(context.Background(), file, 64<<10, func(n int) (io.WriteCloser, error) {
			if n > 20 {
				return nil, io.ErrShortWrite
			}
			return &part{}, nil
		}, Options{})
	})
}

// eventsReel makes a reel of bytes: each four are an event of one of three threads, a drop or a switch of goroutines.
func eventsReel(t *testing.T, data []byte) *reel.File {
	t.Helper()
	h := reel.Header{Goroutines: len(data) > 0 && data[0]&1 != 0}
	if len(data) > 0 {
		h.Clock.Mode = reel.ClockMode(data[0] >> 1 % 3)
		data = data[1:]
	}
	return recordAs(t, h, []string{"a", "b;1", "\xff\"", "runtime.goexit1", ""}, func(w *reel.Writer) {
		threads := []*reel.ThreadWriter{
			appendTo(t, w, reel.Thread{TID: 5, Name: "t"}), appendTo(t, w, reel.Thread{TID: 5, Process: 9}), appendTo(t, w, reel.Thread{TID: 6, EndTick: 3000}),
		}
		now := uint64(1001)
		for ; len(data) >= 4; data = data[4:] {
			now += uint64(data[3])
			tw := threads[data[0]%3]
			sp := uint32(base-64<<20*int(data[1]>>6)) - uint32(data[1]&63)*16
			e := reel.Entry(now, sp, uint32(data[2])%7+1)
			switch data[0] >> 4 {
			case 0, 1, 2, 3, 4, 5:
			case 15:
				if err := tw.Dropped(uint64(data[1]), uint64(data[2]), now); err != nil {
					t.Fatal(err)
				}
				continue
			case 14, 13:
				if !h.Goroutines {
					continue
				}
				e = reel.Switch(now, uint64(data[2]%4))
			default:
				e = reel.Exit(now, sp, e.ID())
			}
			if h.Clock.Mode == reel.ClockNone || h.Clock.Mode == reel.ClockExit && !e.IsExit() {
				e.Time = 0
			}
			if err := tw.Append([]reel.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whatever happened, each format has each call that the report has, as often and properly nested.
func FuzzExportsHaveAllCalls(f *testing.F) {
	f.Add([]byte{0})
	for mode := range byte(6) {
		state, data := uint32(mode)+1, []byte{mode}
		for range 4 * 300 {
			state = state*1664525 + 1013904223
			data = append(data, byte(state>>24))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := eventsReel(t, data[:min(len(data), 4096)])
		want := map[string]int64{}
		folded := map[string]int64{}
		for _, fn := range reel.Summarize(file, reel.SummaryOptions{}).Functions {
			name, _ := (&walk{f: file}).functionName(fn.ID)
			want[validText(name)] += int64(fn.Calls)
			folded[foldable(name)] += int64(fn.Calls)
		}
		whole := export(t, file, Options{})
		for what, files := range map[string][]chromeFile{"chrome": {whole}, "chrome split": splitParts(t, file, 64<<10)} {
			got := map[string]int64{}
			calls, _ := callTimes(files...)
			for name, n := range calls {
				got[name] = int64(n)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: %s", what, differences(got, want))
			}
		}
		if got := seenByPProf(t, exportTo(t, file, "pb.gz", Options{})); !maps.Equal(got.calls, want) {
			t.Errorf("pprof: %s", differences(got.calls, want))
		}
		if got := seenInFolded(t, exportTo(t, file, "folded", Options{Weight: WeightCalls}), false); !maps.Equal(got.calls, folded) {
			t.Errorf("folded: %s", differences(got.calls, folded))
		}
		if got := callsInSpeedscope(t, exportTo(t, file, "speedscope", Options{})); !maps.Equal(got, want) {
			t.Errorf("speedscope: %s", differences(got, want))
		}
	})
}

// callsInSpeedscope counts the calls of a speedscope file and checks that they nest and that their times increase.
func callsInSpeedscope(t *testing.T, name string) map[string]int64 {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			EndValue int64
			Events   []struct {
				Type  string
				Frame int
				At    int64
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	calls := map[string]int64{}
	for k, p := range file.Profiles {
		var open []int
		at := int64(-1)
		for i, e := range p.Events {
			if e.At <= at || e.At > p.EndValue {
				t.Errorf("profile %d, event %d: at %d after %d, the end is %d", k, i, e.At, at, p.EndValue)
			}
			at = e.At
			if e.Type == "O" {
				calls[file.Shared.Frames[e.Frame].Name]++
				open = append(open, e.Frame)
				continue
			}
			if len(open) == 0 || open[len(open)-1] != e.Frame {
				t.Fatalf("profile %d, event %d ends %d, open are %v", k, i, e.Frame, open)
			}
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			t.Errorf("profile %d: %v are never ended", k, open)
		}
	}
	return calls
}
