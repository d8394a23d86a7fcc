package doctest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callreel/callreel/internal/realtest"
)

// all are the documents of this repository.
func all(t *testing.T) []*Document {
	t.Helper()
	docs, err := Documents(realtest.Root())
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) < 20 {
		t.Fatalf("only %d documents below %s", len(docs), realtest.Root())
	}
	return docs
}

func TestLinksLeadSomewhere(t *testing.T) {
	docs := all(t)
	byPath := map[string]*Document{}
	for _, d := range docs {
		byPath[d.Path] = d
	}
	links := 0
	for _, d := range docs {
		for _, l := range d.Links() {
			links++
			if strings.Contains(l.Target, "://") || strings.HasPrefix(l.Target, "mailto:") {
				continue
			}
			file, name, _ := strings.Cut(l.Target, "#")
			to := d.Path
			if file != "" {
				to = path.Join(path.Dir(d.Path), file)
			}
			if _, err := os.Stat(filepath.Join(realtest.Root(), filepath.FromSlash(to))); err != nil || strings.HasPrefix(to, "..") {
				t.Errorf("%s:%d: %s leads nowhere", d.Path, l.Line, l.Target)
				continue
			}
			if name != "" && (byPath[to] == nil || !byPath[to].Anchors()[name]) {
				t.Errorf("%s:%d: %s has no heading %q", d.Path, l.Line, to, name)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

func TestLinesAreShort(t *testing.T) {
	const most = 120
	for _, d := range all(t) {
		for i, line := range d.Lines {
			n := utf8.RuneCountInString(line)
			if n > most {
				t.Errorf("%s:%d: %d characters, %d at most", d.Path, i+1, n, most)
			}
			if strings.TrimRight(line, " \t") != line {
				t.Errorf("%s:%d: blanks at the end", d.Path, i+1)
			}
		}
		if d.Path == "README.md" && len(d.Lines) > 150 {
			t.Errorf("%s: %d lines, 150 at most", d.Path, len(d.Lines))
		}
	}
}

func TestEachPageIsListed(t *testing.T) {
	linked := map[string]bool{}
	docs := all(t)
	for _, d := range docs {
		if d.Path == "docs/README.md" {
			for _, l := range d.Links() {
				file, _, _ := strings.Cut(l.Target, "#")
				linked[path.Join("docs", file)] = true
			}
		}
	}
	for _, d := range docs {
		if path.Dir(d.Path) == "docs" && d.Path != "docs/README.md" && !linked[d.Path] {
			t.Errorf("docs/README.md doesn't list %s", d.Path)
		}
	}
}

// inTree is what looks like a path of this repository: a folder of its root and something behind.
var inTree = regexp.MustCompile(`^(bench|cfi|cmd|demangle|demo|docs|dwarf|export|internal|isa|live|object|process|recorder|reel|sampler|scripts|symbols|testdata|unwind|viewer)/[\w./-]+$`)

// notYet are paths that documents name though they are not there: docs/porting.md those of a port.
var notYet = regexp.MustCompile(`arm64|^demo/out`)

func TestFilesThatAreNamedAreThere(t *testing.T) {
	found := 0
	for _, d := range all(t) {
		for _, s := range d.Spans {
			if !inTree.MatchString(s.Text) || notYet.MatchString(s.Text) || strings.HasSuffix(s.Text, "VERB.go") {
				continue
			}
			found++
			p := filepath.Join(realtest.Root(), filepath.FromSlash(s.Text))
			if _, err := os.Stat(p); err == nil {
				continue
			}
			if m, _ := filepath.Glob(p + ".*"); len(m) == 0 { // isa.Width is named so, too
				t.Errorf("%s:%d: %s isn't there", d.Path, s.Line, s.Text)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d paths were found", found)
	}
}

// elsewhere are names of files that no reader of the repository has.
var elsewhere = regexp.MustCompile(`\bDESIGN\.md|\bFACTS\.md|\bCLI\.md|/work/|/root/|/home/`)

func TestNoFileElsewhereIsNamed(t *testing.T) {
	for _, d := range all(t) {
		for i, line := range d.Lines {
			if m := elsewhere.FindString(line); m != "" {
				t.Errorf("%s:%d: %s is not in the repository", d.Path, i+1, m)
			}
		}
	}
}

// reasonName is how the planner's source names a reason for refusing a function.
var reasonName = regexp.MustCompile(`(?m)^\s+Reason\w+:\s+"([a-z-]+)"`)

func TestEachReasonIsExplained(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realtest.Root(), "recorder", "internal", "*", "reason.go"))
	if err != nil || len(files) != 1 {
		t.Fatalf("where are the planner's reasons? %q, %v", files, err)
	}
	source, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	reasons := reasonName.FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 20 {
		t.Fatalf("only %d reasons in %s", len(reasons), files[0])
	}
	explained := map[string]bool{}
	for _, d := range all(t) {
		if d.Path == "docs/limits.md" {
			for _, s := range d.Spans {
				explained[s.Text] = true
			}
		}
	}
	for _, r := range reasons {
		if !explained[r[1]] {
			t.Errorf("docs/limits.md doesn't explain %s", r[1])
		}
	}
}
