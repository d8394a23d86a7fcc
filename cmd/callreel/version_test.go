package main

import (
	"archive/zip"
	"debug/buildinfo"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestVersionOfABuildIsWhatGoKnowsOfIt(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		main     string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "v1.2.3"}, // go install …@v1.2.3
		{"v0.0.0-20261123062335-0123456789ab+dirty", []debug.BuildSetting{setting("vcs.revision", commit)}, "v0.0.0-20261123062335-0123456789ab+dirty"},
		{"(devel)", []debug.BuildSetting{setting("vcs.revision", commit), setting("vcs.modified", "false")}, "0123456789ab"},
		{"(devel)", []debug.BuildSetting{setting("vcs.revision", commit), setting("vcs.modified", "true")}, "0123456789ab-dirty"},
		{"(devel)", []debug.BuildSetting{setting("vcs.revision", "7"), setting("-buildmode", "exe")}, "7"},
		{"(devel)", nil, "devel"},
		{"", nil, "devel"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Path: "github.com/callreel/callreel", Version: c.main}, Settings: c.settings}
		if got := versionOf(info); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.main, c.settings, got, c.want)
		}
	}
}

// The whole program, built without the linker's word, says what Go wrote into it.
func TestABuildWithoutTheLinkersWordSaysWhatGoKnows(t *testing.T) {
	if os.Getenv("CALLREEL") != "" {
		t.Skip("CALLREEL names a program that may have been built with it")
	}
	program := realtest.CallreelPath(t)
	info, err := buildinfo.ReadFile(program)
	realtest.Must(t, err)
	if r := realtest.MustCallreel(t, "--version"); r.Stdout != "callreel "+versionOf(info)+"\n" {
		t.Errorf("%q, want %q", r.Stdout, versionOf(info))
	}
}

// printVersion is a program that has the version of callreel and nothing else of it: it is built in a second.
const printVersion = `package main

func main() { println("callreel", versionText()) }
`

// go install takes a released module from a proxy, here from a folder that is laid out like one, and is told no flags.
func TestGoInstallOfAReleaseKnowsItsVersion(t *testing.T) {
	realtest.Need(t, realtest.GoTool)
	const module, release = "github.com/callreel/callreel", "v1.98.7"
	source, err := os.ReadFile("version.go")
	realtest.Must(t, err)
	dir := t.TempDir()
	versions := filepath.Join(dir, "proxy", module, "@v")
	realtest.Must(t, os.MkdirAll(versions, 0o755))
	gomod := []byte("module " + module + "\n\ngo 1.26\n")
	write(t, versions, "list", []byte(release+"\n"))
	write(t, versions, release+".info", []byte(`{"Version":"`+release+`"}`))
	write(t, versions, release+".mod", gomod)
	out, err := os.Create(filepath.Join(versions, release+".zip"))
	realtest.Must(t, err)
	w := zip.NewWriter(out)
	for name, data := range map[string][]byte{"go.mod": gomod, "cmd/callreel/version.go": source, "cmd/callreel/main.go": []byte(printVersion)} {
		f, err := w.Create(module + "@" + release + "/" + name)
		realtest.Must(t, err)
		_, err = f.Write(data)
		realtest.Must(t, err)
	}
	realtest.Must(t, errors.Join(w.Close(), out.Close()))

	install := exec.Command("go", "install", module+"/cmd/callreel@"+release)
	install.Dir = dir
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOMODCACHE="+filepath.Join(dir, "modules"), "GOFLAGS=-modcacherw", "CGO_ENABLED=0",
		"GOSUMDB=off", "GOPROXY=file://"+filepath.Join(dir, "proxy"))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said, err := exec.Command(filepath.Join(dir, "callreel")).CombinedOutput()
	if want := "callreel " + release + "\n"; err != nil || string(said) != want {
		t.Errorf("%v, %q, want %q", err, said, want)
	}
}
