package doctest

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/mark/header"
)

// titled is the first line of a program that is shown whole: its file's name, in a comment.
var titled = regexp.MustCompile(`^(?:/\* |// )(\w+)\.(c|go)(?: \*/)?$`)

// programs builds the programs that a document shows whole, for its commands.
func (s *stage) programs(t *testing.T, d *Document) {
	t.Helper()
	for i := range d.Blocks {
		b := &d.Blocks[i]
		if len(b.Lines) == 0 {
			continue
		}
		title := titled.FindStringSubmatch(b.Lines[0])
		if title == nil {
			continue
		}
		source := strings.Join(b.Lines, "\n") + "\n"
		s.write(t, title[1]+"."+title[2], source)
		if title[2] == "go" {
			s.buildGo(t, title[1])
		} else {
			s.buildC(t, title[1])
		}
	}
}

// buildC compiles a program, with callreel.h beside it.
func (s *stage) buildC(t *testing.T, name string) {
	t.Helper()
	text, err := io.ReadAll(header.Reader())
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, header.Name, string(text))
	cmd := exec.Command(realtest.Tool(t, realtest.GCC), "-O2", "-Wall", "-Werror", "-o", name, name+".c")
	cmd.Dir = s.folder
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s.c: %v\n%s", name, err, said)
	}
}

// buildGo compiles a program as if its source stood in this module.
func (s *stage) buildGo(t *testing.T, name string) {
	t.Helper()
	const place = "internal/doctest/shown"
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(realtest.Root(), place, "main.go"): filepath.Join(s.folder, name+".go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(realtest.Tool(t, realtest.GoTool), "build", "-overlay", file, "-o", filepath.Join(s.folder, name), "./"+place)
	cmd.Dir, cmd.Env = realtest.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s.go: %v\n%s", name, err, said)
	}
}
