package imagetree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// goProgram cross-compiles a program, which Go does without help.
func goProgram(t *testing.T, dir, system, arch, out string, flags ...string) {
	t.Helper()
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	cmd := exec.Command("go", append(append([]string{"build", "-o", filepath.Join(dir, out)}, flags...), filepath.Join(dir, "main.go"))...)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

func TestStrippedFileAndDebugFileAreOneGroup(t *testing.T) {
	realtest.Need(t, realtest.Objcopy)
	objcopy, err := realtest.Objcopy.Find()
	realtest.Must(t, err)
	dir := t.TempDir()
	goProgram(t, dir, "linux", "amd64", "whole", "-ldflags=-B 0xabcdef")
	realtest.Must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	plain, debug := filepath.Join(dir, "z.stripped"), filepath.Join(dir, "a", "b", "some.debug")
	realtest.Must(t, exec.Command(objcopy, "--strip-all", filepath.Join(dir, "whole"), plain).Run())
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", filepath.Join(dir, "whole"), debug).Run())
	realtest.Must(t, os.Remove(filepath.Join(dir, "whole")))
	realtest.Must(t, os.Symlink(plain, filepath.Join(dir, "a", "link")))

	tree, err := Read(t.Context(), dir)
	realtest.Must(t, err)
	if len(tree.Groups) != 1 || len(tree.Failures) != 0 || len(tree.WithoutID) != 0 {
		t.Fatalf("%+v", tree)
	}
	g := tree.Groups[0]
	if g.ID != "abcdef" || g.Image.Path != plain || g.Debug == nil || g.Debug.Path != debug {
		t.Errorf("%+v, debug %+v", g, g.Debug)
	}
}

func TestPartsOfFatFilesAreImages(t *testing.T) {
	lipo, err := exec.LookPath("llvm-lipo-19")
	if err != nil {
		realtest.Need(t, realtest.Dsymutil) // of the same package
		t.Fatal(err)
	}
	dir := t.TempDir()
	goProgram(t, dir, "darwin", "arm64", "arm")
	goProgram(t, dir, "darwin", "amd64", "intel")
	arm, intel := filepath.Join(dir, "arm"), filepath.Join(dir, "intel")
	realtest.Must(t, exec.Command(lipo, "-create", arm, intel, "-output", filepath.Join(dir, "fat")).Run())
	realtest.Must(t, errors.Join(os.Remove(arm), os.Remove(intel)))
	tree, err := Read(t.Context(), dir)
	realtest.Must(t, err)
	if len(tree.Groups) != 2 || len(tree.Failures) != 0 {
		t.Fatalf("%+v", tree)
	}
	for _, g := range tree.Groups {
		im, err := g.Image.Open(object.Opener{})
		realtest.Must(t, err)
		if im.ID() != g.ID || im.ArchName() != g.Image.Arch {
			t.Errorf("%+v is %s of %s", g, im.ID(), im.ArchName())
		}
		realtest.Must(t, im.Close())
	}
}

func TestWhatIsNoImageIsPassedOverAndWhatIsDamagedIsNamed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": "", "three": "\x7fEL", "text": "hello, world\n", "Java.class": "\xca\xfe\xba\xbe\x00\x00\x00\x34junk",
		"cut": "\x7fELF\x02\x01\x01", "mach": "\xcf\xfa\xed\xfe\x07\x00", "fat": "\xca\xfe\xba\xbe\x00\x00\x00\x02",
	} {
		realtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	tree, err := Read(t.Context(), dir)
	realtest.Must(t, err)
	var failed []string
	for _, f := range tree.Failures {
		failed = append(failed, filepath.Base(f.Path))
	}
	if len(tree.Groups) != 0 || len(failed) != 3 || failed[0] != "cut" || failed[1] != "fat" || failed[2] != "mach" {
		t.Errorf("%+v, failed %q", tree, failed)
	}
	if _, err := Read(t.Context(), filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
