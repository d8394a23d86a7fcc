package export

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// runReader runs one of the scripts of testdata/readers, which print JSON.
func runReader(t *testing.T, into any, script string, args ...string) {
	t.Helper()
	realtest.Need(t, realtest.Node)
	node, err := realtest.Node.Find()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, node, append([]string{filepath.Join("testdata", "readers", script)}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", script, args, err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%s %q: %v in\n%.500s", script, args, err, out)
	}
}

// traceProcessor asks Perfetto's trace_processor about files: of each, each query has a list of rows.
func traceProcessor(t *testing.T, files []string, queries ...string) [][][][]any {
	t.Helper()
	realtest.Need(t, realtest.NPMReaders)
	var answers [][][][]any
	runReader(t, &answers, "trace_processor.mjs", slices.Concat(files, []string{"--"}, queries)...)
	return answers
}

// catapultTrace is what Chrome's trace viewer has imported.
type catapultTrace struct {
	Threads []struct {
		PID     int
		Process string
		TID     int
		Name    string
		Slices  []catapultSlice
	}
	Counters []struct {
		Name    string
		Samples [][2]float64
	}
	Flows    [][2]string
	Async    []catapultSlice
	Warnings []string
}

type catapultSlice struct {
	start, duration float64 // microseconds
	name, category  string
	depth           int
	args            map[string]any
}

func (s *catapultSlice) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.start, &s.duration, &s.name, &s.category, &s.depth, &s.args})
}

func catapult(t *testing.T, files ...string) []catapultTrace {
	t.Helper()
	realtest.Need(t, realtest.TraceViewer)
	viewer, err := realtest.TraceViewer.Find()
	if err != nil {
		t.Fatal(err)
	}
	var answers []catapultTrace
	runReader(t, &answers, "catapult.mjs", append([]string{viewer}, files...)...)
	return answers
}

// speedscopeFile is what speedscope has imported.
type speedscopeFile struct {
	Name     string
	Profiles []struct {
		Name, Unit string
		Total      float64
		Calls      []speedscopeCall
	}
}

type speedscopeCall struct {
	start, duration float64
	name, file      string
	depth           int
}

func (c *speedscopeCall) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&c.start, &c.duration, &c.name, &c.file, &c.depth})
}

func speedscopeImport(t *testing.T, files ...string) []speedscopeFile {
	t.Helper()
	realtest.Need(t, realtest.NPMReaders)
	var answers []speedscopeFile
	runReader(t, &answers, "speedscope.mjs", files...)
	return answers
}

// exporters are all formats, by the extension that their readers know them by.
var exporters = map[string]func(context.Context, *reel.File, io.Writer, Options) error{
	"json": Chrome, "pftrace": Perfetto, "speedscope": Speedscope, "pb.gz": PProfCalls, "folded": FoldedCalls,
}

// exportTo writes a reel in a format and returns the file.
func exportTo(t *testing.T, f *reel.File, ext string, opt Options) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out."+ext))
	if err == nil {
		defer out.Close()
		err = exporters[ext](context.Background(), f, out, opt)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Name()
}
