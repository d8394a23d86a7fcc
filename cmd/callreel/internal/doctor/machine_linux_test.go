package doctor

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestKernelVersionIsReadFromReleases(t *testing.T) {
	for release, want := range map[string]struct {
		major, minor int
		known        bool
	}{
		"6.12.9-amd64":              {6, 12, true},
		"4.17":                      {4, 17, true},
		"5.14.0-427.el9.x86_64":     {5, 14, true},
		"6.1-rc3":                   {6, 1, true},
		"":                          {0, 0, false},
		"six":                       {0, 0, false},
		"6.":                        {6, 0, false},
		"99999999999999999999.1.2 ": {1<<63 - 1, 1, false},
	} {
		major, minor, known := kernelVersion(release)
		if known != want.known || known && (major != want.major || minor != want.minor) {
			t.Errorf("%q is %d.%d, %v", release, major, minor, known)
		}
	}
}

func TestPermissionNamesWhatToChange(t *testing.T) {
	for _, c := range []struct {
		name    string
		uid     int
		capable bool
		yama    string
		state   State
		do      string
	}{
		{"root", 0, true, "", OK, ""},
		{"root under Yama", 0, true, "1", OK, ""},
		{"root under Yama that only a boot changes", 0, true, "3", No, "boot"},
		{"user", 1000, false, "", Warning, "CAP_SYS_PTRACE"},
		{"user, Yama off", 1000, false, "0", Warning, "CAP_SYS_PTRACE"},
		{"user, children only", 1000, false, "1", Warning, "sysctl kernel.yama.ptrace_scope=0"},
		{"user, nobody but root", 1000, false, "2", No, "sysctl kernel.yama.ptrace_scope=0"},
		{"root of a container", 0, false, "", Warning, "--cap-add SYS_PTRACE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mayTrace(c.uid, c.capable, c.yama)
			if got.State != c.state || !strings.Contains(got.Do, c.do) || (got.State != OK) != (got.Do != "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestRecordingWorksUnlessACheckSaysNo(t *testing.T) {
	if !Works([]Check{ok("a", ""), warning("b", "", "")}) {
		t.Error("a warning keeps recording from working")
	}
	if Works([]Check{ok("a", ""), no("b", "", ""), ok("c", "")}) {
		t.Error("a no is overlooked")
	}
}

func TestDiskThatCannotBeWrittenToIsWarnedOf(t *testing.T) {
	if c := disk(t.TempDir()); c.State == No || !strings.Contains(c.What, "GiB free") {
		t.Errorf("%+v", c)
	}
	if c := disk("/nonexistent/callreel"); c.State != Warning || c.Do == "" {
		t.Errorf("%+v", c)
	}
}

func TestTextCheckFailsForAProgramThatIsNoCallreel(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("missing capability: the program true (%v)", err)
	}
	if c := writeText(context.Background(), program); c.State != No {
		t.Errorf("%+v", c)
	}
	if c := writeText(context.Background(), "/nonexistent/callreel"); c.State != Warning {
		t.Errorf("%+v", c)
	}
}
