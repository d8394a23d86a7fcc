package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

const (
	described = "v1.98.7-3-gabcdef012345"
	packaged  = "1.98.7+git20261123.3.abcdef012345"
	epoch     = "1795415015" // in 2026
)

func TestMain(m *testing.M) {
	code := m.Run()
	if made.folder != "" {
		if err := os.RemoveAll(made.folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// made is the release that all tests look at; nobody changes it.
var made struct {
	sync.Once
	folder string
	err    error
}

// makeRelease makes one in a new folder.
func makeRelease(ctx context.Context) (string, error) {
	if err := readSources(); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "callreel-dist-")
	if err != nil {
		return "", err
	}
	return folder, run(ctx, []string{"-root", realtest.Root(), "-version", described, "-o", folder}, io.Discard)
}

// readSources opens what releases are made from: go test takes the result of an earlier run for this one unless a file
// has changed that the test itself has opened.
func readSources() error {
	return filepath.WalkDir(realtest.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go") || !slices.Contains([]string{".go", ".mod", ".sum", ".yaml"}, filepath.Ext(path)) {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// theRelease returns the path of a file of it by the end of its name.
func theRelease(t *testing.T, end string) string {
	t.Helper()
	realtest.Need(t, realtest.GoTool)
	t.Setenv("SOURCE_DATE_EPOCH", epoch)
	made.Do(func() { made.folder, made.err = makeRelease(context.Background()) })
	if made.err != nil {
		t.Fatal(made.err)
	}
	found, err := filepath.Glob(filepath.Join(made.folder, "*"+end))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q of *%s, %v", found, end, err)
	}
	return found[0]
}

// unpacked are the files of the tar.gz, by their names.
func unpacked(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open(theRelease(t, ".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("gzip has name %q and time %v", z.Name, z.ModTime)
	}
	files := map[string][]byte{}
	date := time.Unix(1795415015, 0)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := int64(0o644)
		if h.Typeflag == tar.TypeDir || strings.HasSuffix(h.Name, "/bin/callreel") {
			mode = 0o755
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || !h.ModTime.Equal(date) || h.Mode != mode {
			t.Errorf("%+v", h)
		}
		name, found := strings.CutPrefix(h.Name, "callreel-"+packaged+"-linux-amd64/")
		if !found {
			t.Errorf("%s isn't in the archive's folder", h.Name)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArchiveHasTheProgramItsPagesAndCompletions(t *testing.T) {
	files := unpacked(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "callreel")
	if err := os.WriteFile(program, files["bin/callreel"], 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "--version").CombinedOutput(); err != nil || string(out) != "callreel "+described+"\n" {
		t.Errorf("%v, %q", err, out)
	}
	for _, verb := range []string{"", "-record", "-report", "-cfi-lint", "-symbols-build", "-completion"} {
		if files["share/man/man1/callreel"+verb+".1.gz"] == nil {
			t.Errorf("callreel%s has no page", verb)
		}
	}
	for name, want := range map[string]string{
		"share/bash-completion/completions/callreel":    "__start_callreel",
		"share/zsh/site-functions/_callreel":            "#compdef callreel",
		"share/fish/vendor_completions.d/callreel.fish": "complete -c callreel",
		"share/doc/callreel/README.md":                  "callreel",
		"share/doc/callreel/copyright":                  "no licence yet",
		"share/doc/callreel/third-party-licences":       "==== github.com/spf13/cobra v",
		"share/doc/callreel/docs/install.md":            "callreel",
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s has no %q", name, want)
		}
	}
	for name := range files {
		if strings.Contains(name, "vendor-completions") || strings.Contains(name, "man.1") {
			t.Errorf("%s doesn't belong there", name)
		}
	}
}

func TestSumsAreThoseOfTheFiles(t *testing.T) {
	sums := theRelease(t, "SHA256SUMS")
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 4 || !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) }) {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join(filepath.Dir(sums), name))
		if got := sha256.Sum256(data); err != nil || sum != hex.EncodeToString(got[:]) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// The required fields and the forms of the others are those of CycloneDX 1.6's schema.
func TestSBOMNamesEachModuleOfTheProgram(t *testing.T) {
	data, err := os.ReadFile(theRelease(t, ".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got bom
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	uuid := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if got.Format != "CycloneDX" || got.SpecVersion != "1.6" || got.Version != 1 || !uuid.MatchString(got.SerialNumber) {
		t.Errorf("%+v", got)
	}
	if when, err := time.Parse(time.RFC3339, got.Metadata.Timestamp); err != nil || when.Unix() != 1795415015 {
		t.Errorf("%q", got.Metadata.Timestamp)
	}
	program := filepath.Join(t.TempDir(), "callreel")
	files := unpacked(t)
	if err := os.WriteFile(program, files["bin/callreel"], 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(files["bin/callreel"])
	self := got.Metadata.Component
	if self.Type != "application" || self.Name != "callreel" || self.Version != described {
		t.Errorf("%+v", self)
	}
	if len(self.Hashes) != 1 || self.Hashes[0] != (hash{"SHA-256", hex.EncodeToString(sum[:])}) {
		t.Errorf("%+v", self)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"std": strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want[m.Path] = m.Version
	}
	refs := map[string]bool{}
	for _, c := range got.Components {
		if c.Type != "library" || want[c.Name] != c.Version || c.PURL != "pkg:golang/"+c.Name+"@"+c.Version || refs[c.Ref] {
			t.Errorf("%+v, want version %q", c, want[c.Name])
		}
		if c.Name != "std" && (len(c.Hashes) != 1 || c.Hashes[0].Algorithm != "SHA-256" || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(c.Hashes[0].Content)) {
			t.Errorf("%s: %+v", c.Name, c.Hashes)
		}
		refs[c.Ref] = true
		delete(want, c.Name)
	}
	if len(want) > 0 || len(refs) < 5 {
		t.Errorf("not in it: %v", want)
	}
	if len(got.Dependencies) != 1 || got.Dependencies[0].Ref != got.Metadata.Component.Ref || len(got.Dependencies[0].DependsOn) != len(refs) {
		t.Errorf("%+v", got.Dependencies)
	}
}

func TestAFolderWithSomethingInItIsLeftAsItIs(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", epoch)
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-root", realtest.Root(), "-version", described, "-o", dir}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != 1 {
		t.Errorf("%v, %v", there, err)
	}
}

func TestWrongUsageIsRefused(t *testing.T) {
	for _, c := range []struct {
		epoch string
		args  []string
		want  string
	}{
		{epoch, []string{"more"}, "no argument"},
		{epoch, nil, "set VERSION"},
		{"yesterday", []string{"-version", described}, "yesterday"},
		{"-1", []string{"-version", described}, "-1"},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		out := filepath.Join(t.TempDir(), "dist")
		err := run(t.Context(), append([]string{"-o", out}, c.args...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.args, err)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %s was made", c.args, out)
		}
	}
}
