package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestMarkersJSONHasThePromisedKeys(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	dir := t.TempDir()
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "callreel.h"), []byte(callreel("", "header").stdout), 0o644))
	source, program := filepath.Join(dir, "m.c"), filepath.Join(dir, "m")
	realtest.Must(t, os.WriteFile(source, []byte("#include \"callreel.h\"\nint main(int argc, char **argv) { CALLREEL_BEGIN(\"work\", argc); CALLREEL_END(); return argv == 0; }\n"), 0o644))
	if out, err := exec.Command("gcc", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := realtest.Decode[struct {
		Markers []struct {
			Provider  *string `json:"provider"`
			Name      *string `json:"name"`
			Address   *string `json:"address"`
			Arguments []struct {
				Size   *int    `json:"size"`
				Signed *bool   `json:"signed"`
				Place  *string `json:"place"`
			} `json:"arguments"`
			Semaphore *string `json:"semaphore"`
			Reason    *string `json:"reason"`
		} `json:"markers"`
	}](t, callreel("", "markers", program, "--json").stdout)
	if len(r.Markers) != 2 {
		t.Fatalf("%d markers", len(r.Markers))
	}
	for _, m := range r.Markers {
		if m.Provider == nil || m.Name == nil || m.Address == nil || m.Semaphore == nil || m.Reason == nil || m.Arguments == nil {
			t.Errorf("a key is missing of %+v", m)
			continue
		}
		if *m.Name == "end" {
			continue
		}
		if len(m.Arguments) != 1 || m.Arguments[0].Size == nil || *m.Arguments[0].Size != 4 || m.Arguments[0].Signed == nil || !*m.Arguments[0].Signed ||
			m.Arguments[0].Place == nil || *m.Arguments[0].Place != "%edi" {
			t.Errorf("%s has the arguments %+v", *m.Name, m.Arguments)
		}
	}
}
