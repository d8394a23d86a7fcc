package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// recordProgram records what a program says by its markers from its start to its end.
func recordProgram(t *testing.T, flags []string, program string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "said.reel")
	realtest.MustCallreel(t, slices.Concat([]string{"record", "--force", "-o", file}, flags, []string{"--", program}, args)...)
	return file
}

// byValue is how often a span of a title was seen, by what an argument of its beginning says.
func byValue(t *testing.T, file, title, argument string) map[string]uint64 {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]uint64{}
	for _, s := range f.SummarizeMarks(reel.MarkSummaryOptions{By: argument}).Spans {
		if s.Name == title {
			all[s.Value] += s.Complete
		}
	}
	return all
}

// needMarkers skips where the distribution's program has none.
func needMarkers(t *testing.T, file string) {
	t.Helper()
	list := realtest.Callreel(t, "markers", "--json", file)
	realtest.NeedThat(t, filepath.Base(file)+" with markers", func() error {
		if list.Code != 0 || len(realtest.Decode[markersList](t, list.Stdout).Markers) == 0 {
			return exec.ErrNotFound
		}
		return nil
	}())
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	realtest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// PHP says which of its functions run, as often as the program calls them, and within what.
func TestMarkersOfPHP(t *testing.T) {
	needLive(t, realtest.PHP)
	php, err := filepath.EvalSymlinks(realtest.Tool(t, realtest.PHP))
	realtest.Must(t, err)
	needMarkers(t, php)
	t.Setenv("USE_ZEND_DTRACE", "1")
	file := recordProgram(t, []string{"--markers", "php:*", "--markers", "php:function__*(arg1:s, arg4:s)"}, php, "-n", write(t, "work.php", `<?php
function area($n) { return $n * 2; }
class Shape { function side($n) { return area($n); } }
$s = new Shape;
for ($i = 0; $i < 500; $i++) { $s->side($i); }
function bad() { throw new Exception("no"); }
for ($i = 0; $i < 7; $i++) { try { bad(); } catch (Exception $e) {} }
`))
	got := byValue(t, file, "function", "arg1")
	for name, want := range map[string]uint64{"area": 500, "side": 500, "main": 1} {
		if got[name] != want {
			t.Errorf("%d of %s, not %d: %v", got[name], name, want, got)
		}
	}
	if n := byValue(t, file, "function", "arg4")["Shape"]; n != 500 {
		t.Errorf("%d functions of the class, not 500", n)
	}
	marks := passed(t, file, nil)
	for name, want := range map[string]int64{"php:exception__thrown": 7, "php:exception__caught": 7, "php:request__startup": 1, "php:request__shutdown": 1} {
		if marks[name] != want {
			t.Errorf("%d of %s, not %d", marks[name], name, want)
		}
	}
}

// Ruby says which of its library's functions run, and those of the program while a TracePoint is there.
func TestMarkersOfRuby(t *testing.T) {
	needLive(t, realtest.Ruby)
	ruby, err := filepath.EvalSymlinks(realtest.Tool(t, realtest.Ruby))
	realtest.Must(t, err)
	file := recordProgram(t, []string{"--markers", "ruby:*", "--markers", "ruby:*method__*(arg1:s, arg2:s)"}, ruby, "--disable-gems", write(t, "work.rb", `
class Shape; def area(n) = n * 2; end
s = Shape.new
TracePoint.new(:call, :return) {}.enable { 500.times { |i| s.area(i) } }
300.times { "a".upcase }
GC.disable
3.times { GC.start }
`))
	if n := byValue(t, file, "method", "arg2")["area"]; n != 500 {
		t.Errorf("%d of area, not 500", n)
	}
	if n := byValue(t, file, "cmethod", "arg2")["upcase"]; n != 300 {
		t.Errorf("%d of upcase, not 300", n)
	}
	if n := byValue(t, file, "gc__mark", "")[""]; n < 3 {
		t.Errorf("%d collections, at least 3", n)
	}
}
