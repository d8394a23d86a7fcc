package symbols

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// run runs a program in a folder, with input, and returns what it writes.
func run(t testing.TB, dir string, input []byte, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a tool that hangs must not take the others with it
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return out
}

// source is the path of a file in testdata.
func source(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compile builds a file of testdata with gcc or clang and returns the program's path.
func compile(t testing.TB, by realtest.Capability, name string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{realtest.Tool(t, by), "-o", "program"}, flags...)
	if filepath.Ext(name) == ".cc" && by == realtest.Clang {
		args = append(args, "-x", "c++", source(t, name), "-x", "none", "-lstdc++", "-lgcc_s")
	} else {
		args = append(args, source(t, name))
	}
	run(t, dir, nil, args...)
	return filepath.Join(dir, "program")
}

// image opens an image for the length of the test.
func image(t testing.TB, path string) *object.Image {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := im.Close(); err != nil {
			t.Error(err)
		}
	})
	return im
}

// mapOf builds the map of an image.
func mapOf(t testing.TB, path string, opts BuildOptions) *Map {
	t.Helper()
	var data bytes.Buffer
	stats, err := Build(t.Context(), image(t, path), &data, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range stats.Problems {
		t.Errorf("%s: %v", path, problem)
	}
	if int64(data.Len()) != stats.Bytes {
		t.Errorf("%d bytes written, %d told", data.Len(), stats.Bytes)
	}
	m, err := Parse(path, data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
