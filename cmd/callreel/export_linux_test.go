package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestExportWithLinesNamesSourceFiles(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "threads"), "fixed", "1", "5")
	r := realtest.StartRecording(t, "-p", strconv.Itoa(target.Pid()), "-m", "threads-*")
	target.Go()
	target.WaitLine("counted ")
	r.Stop()
	source, err := os.ReadFile(filepath.Join(realtest.Root(), "testdata", "targets", "threads.c"))
	realtest.Must(t, err)
	at := regexp.MustCompile(`(?m)^TRACED uint64_t counted_a\(`).FindIndex(source)
	if at == nil {
		t.Fatal("threads.c has no counted_a")
	}
	line := 1
	for _, c := range source[:at[0]] {
		if c == '\n' {
			line++
		}
	}
	out := realtest.MustCallreel(t, "export", r.File, "--format", "speedscope", "--lines", "-o", "-").Stdout
	file := filepath.Join(realtest.Root(), "testdata", "targets", "threads.c")
	found := regexp.MustCompile(`"name":"counted_a","file":"` + regexp.QuoteMeta(file) + `","line":(\d+)}`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no %s in\n%s", file, out[max(0, len(out)-3000):])
	}
	// The first instruction may be of a line inside of the function.
	if n, err := strconv.Atoi(found[1]); err != nil || n < line || n > line+3 {
		t.Errorf("counted_a is said to be at line %s, it is at %d", found[1], line)
	}
}
