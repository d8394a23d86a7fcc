package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestInitialFileSystem(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var b bytes.Buffer
	if err := writeInitrd(&b, write("prog", "program"), []string{write("z.ko", "one"), write("a.ko", "three")}); err != nil {
		t.Fatal(err)
	}
	if b.Len()%4 != 0 {
		t.Errorf("%d bytes: entries aren't aligned", b.Len())
	}
	tool, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("cpio: ", err)
	}
	cmd := exec.Command(tool, "-t")
	cmd.Stdin = &b
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "dev proc sys newroot modules dev/console init modules/000-z.ko modules/001-a.ko"
	if got := strings.Join(strings.Fields(string(out)), " "); got != want {
		t.Errorf("entries are %s, want %s", got, want)
	}
}

func TestPayloadHoldsFilesAtTheirPaths(t *testing.T) {
	dir := t.TempDir()
	file, link, out := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "out.tar")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o755), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	jobs := []Job{{Name: "a", Folder: dir, Args: []string{file}, Timeout: time.Minute}}
	if err := WritePayload(out, jobs, []string{file, link}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := tar.NewReader(f)
	var got []Job
	if h, err := r.Next(); err != nil || h.Name != JobsFile {
		t.Fatalf("first entry: %v, %v", h, err)
	}
	if err := json.NewDecoder(r).Decode(&got); err != nil || len(got) != 1 || got[0].Timeout != time.Minute {
		t.Errorf("jobs: %v, %v", got, err)
	}
	h, err := r.Next()
	if err != nil || "/"+h.Name != file || h.Mode&0o777 != 0o755 {
		t.Fatalf("the file: %v, %v", h, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "text" {
		t.Errorf("the file's text: %q, %v", text, err)
	}
	if h, err := r.Next(); err != nil || "/"+h.Name != link || h.Linkname != "file" {
		t.Errorf("the link: %v, %v", h, err)
	}
	if err := WritePayload(out, nil, []string{dir}); err == nil {
		t.Error("a folder was taken for a file")
	}
}

func TestEventsAreReadUntilTheirEnd(t *testing.T) {
	for _, c := range []struct {
		name, text string
		done       bool
		err        string
		events     int
	}{
		{"all", `{"kind":"up"}` + "\n" + `{"kind":"output","data":"YQ=="}` + "\n" + `{"kind":"done"}` + "\n", true, "", 3},
		{"the end is missing", `{"kind":"up"}` + "\n", false, "", 1},
		{"nothing", "", false, "", 0},
		{"it gives up", `{"kind":"failed","data":"YQ=="}` + "\n", false, "a", 1},
		{"no JSON", "Kernel panic\n", false, "Kernel panic", 0},
		{"a line without end", strings.Repeat("x", maxLine+1), false, "too long", 0},
	} {
		events := 0
		done, err := readEvents(strings.NewReader(c.text), func(Event) { events++ })
		if done != c.done || events != c.events || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %d events, %v", c.name, done, events, err)
		}
	}
}

func TestModulesComeBehindWhatTheyNeed(t *testing.T) {
	dir := t.TempDir()
	builtin := func(names ...string) {
		list := ""
		for _, n := range names {
			list += "kernel/drivers/" + n + ".ko\n"
		}
		if err := os.WriteFile(filepath.Join(dir, builtinList), []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := modulesOf(dir); err == nil {
		t.Error("a folder without a list of what is built in will do")
	}
	builtin()
	if _, err := modulesOf(dir); err == nil || !strings.Contains(err.Error(), wantedModules[0]) {
		t.Errorf("a folder without modules: %v", err)
	}
	builtin(wantedModules...)
	if got, err := modulesOf(dir); err != nil || len(got) != 0 {
		t.Errorf("all are built in: %v, %v", got, err)
	}
	run := func(name string, args ...string) {
		if said, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
	}
	module := func(name, needs string) {
		source, file := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".ko")
		text := `__attribute__((section(".modinfo"), used)) static const char says[] = "license=GPL\0depends=` + needs + `";`
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		run("gcc", "-c", "-o", file, source)
	}
	module("virtio-rng", "rng_core,virtio")
	module("rng-core", "")
	run("xz", filepath.Join(dir, "virtio-rng.ko")) // as some kernels have them
	builtin(append([]string{"virtio"}, slices.DeleteFunc(slices.Clone(wantedModules), func(n string) bool { return n == "virtio_rng" })...)...)
	for range 2 { // the second time it is unpacked
		got, err := modulesOf(dir)
		if want := []string{filepath.Join(dir, "rng-core.ko"), filepath.Join(dir, "virtio-rng.ko")}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	if got := moduleName("virtio-rng"); got != "virtio_rng" {
		t.Errorf("a module's name is %s", got)
	}
}

func TestTheMachinesOwnPackagesAreLeftAlone(t *testing.T) {
	config := aptConfig("/some/where")
	for _, key := range []string{"Dir::State", "Dir::State::status", "Dir::State::lists", "Dir::Cache", "Dir::Etc::sourcelist"} {
		if !strings.Contains(config, key+` "/some/where`) {
			t.Errorf("%s isn't in the private folder:\n%s", key, config)
		}
	}
	for line := range strings.Lines(archive{suite: largePagesSuite}.sources()) {
		if !strings.Contains(line, "signed-by="+keyring) {
			t.Errorf("a source that needn't be signed: %s", line)
		}
	}
}

// TestChosenTestsExist: a name that matches no test is no failure for go test.
func TestChosenTestsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "recorder", "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var tests []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	chosen := regexp.MustCompile(`\bTest[A-Za-z0-9_]+`)
	for _, name := range []string{"ARM64LIVE", "ARM64SHORT"} {
		line := regexp.MustCompile(`(?m)^` + name + ` *\??= (.*)$`).FindSubmatch(makefile)
		if line == nil {
			t.Fatalf("no %s in the Makefile", name)
		}
		names := chosen.FindAll(line[1], -1)
		if len(names) < 3 {
			t.Errorf("%s names %d tests", name, len(names))
		}
		for _, test := range names {
			if !bytes.Contains(tests, []byte("func "+string(test)+"(")) {
				t.Errorf("%s names %s, which there isn't", name, test)
			}
		}
	}
}

// The emulator may have to wait for a processor for half a minute.
func TestTheKernelIsStuckWhenItsWatchdogSaysSoForAMinute(t *testing.T) {
	for said, want := range map[string]bool{
		"": false,
		"[   56.160415] watchdog: BUG: soft lockup - CPU#1 stuck for 44s! [callreel:119]\n":              false,
		"[   10.0] a\n[  140.160195] watchdog: BUG: soft lockup - CPU#1 stuck for 68s! [callreel:119]\n": true,
		"soft lockup - CPU#1 stuck for 99999999999999999999s!":                                           false,
	} {
		if got := isStuck([]byte(said)); got != want {
			t.Errorf("%q: %v", said, got)
		}
	}
	console := filepath.Join(t.TempDir(), "console")
	if err := os.WriteFile(console, []byte("soft lockup - CPU#0 stuck for 61s!"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	untilStuck(ctx, console, stop)
	if err := context.Cause(ctx); !errors.Is(err, ErrStuck) {
		t.Errorf("it was ended by %v", err)
	}
}
