package recorder_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// smallDisk mounts a file system of so many bytes.
func smallDisk(t testing.TB, size int) string {
	t.Helper()
	realtest.Need(t, realtest.Superuser)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size="+strconv.Itoa(size)); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("needs a system where root may mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// When the disk is full what was written stays, also if the first that meets that is a program which was started and followed.
func TestAFullDiskLosesNothingThatWasWritten(t *testing.T) {
	needLive(t)
	fork, err := os.ReadFile(realtest.Build(t, "fork"))
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	for _, name := range []string{"first", "second", "third"} { // each is another image in the reel
		if err := os.WriteFile(filepath.Join(programs, name), fork, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for try := range 20 {
		dir := smallDisk(t, 256<<10)
		file := filepath.Join(dir, "x.reel")
		script := programs + "/first child; head -c 1M /dev/zero >" + dir + "/filler; " + programs + "/second child; " + programs + "/third child"
		flags := []string{"record", "--follow", "-f", "walk", "-f", "step", "-o", file}
		if try%2 == 0 {
			flags = append(flags, "--lazy")
		}
		r := realtest.Callreel(t, append(flags, "--", "sh", "-c", script)...)
		if !strings.Contains(r.Stderr, "no space left on device") {
			t.Fatalf("try %d: the disk was not full: code %d\n%s", try, r.Code, r.Stderr)
		}
		rep := realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", file).Stdout)
		// The first program's calls were written before the disk was full. Of the others' there is what the last page had room for.
		walks, steps := rep.Report.Calls("walk"), rep.Report.Calls("step")
		if walks < 1 || walks > 3 || steps < max(1000, 1000*(walks-1)) || steps > 1000*walks {
			t.Fatalf("try %d: %d and %d calls are in the reel, want 1 and 1000, or some of another program's more\n%s", try, walks, steps, r.Stderr)
		}
	}
}
