package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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
				if err := tw.Dropped(1, 1, 1025); err != nil {
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
