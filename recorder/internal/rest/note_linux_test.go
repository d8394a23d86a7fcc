package rest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/runtimedir"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/reel"
)

// header is one of a dump.
var header = reel.Header{PID: 1, Command: []string{"x"}, Clock: reel.Clock{TicksPerSecond: 1e9}}

// ownNote is one of this process, with a ring memory that there is not.
func ownNote(t *testing.T, inode uint64) *Note {
	t.Helper()
	start, err := process.StartTime(os.Getpid(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	n, err := Begin(About{RingDev: 1 << 40, RingInode: inode, PID: os.Getpid(), Start: start, PIDNamespace: process.OwnPIDNamespace(), Folder: "/tmp/dumps"}, header)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestANoteIsFoundUntilItsRecorderLeaves(t *testing.T) {
	n := ownNote(t, 1)
	defer n.Close()
	found, err := Find(1<<40, 1)
	if err != nil {
		t.Fatal(err)
	}
	if found.PID != os.Getpid() || found.File.Header().Command[0] != "x" {
		t.Errorf("%+v", found.About)
	}
	found.Close()
	n.Close()
	if _, err := Find(1<<40, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("behind that: %v", err)
	}
}

func TestNotesOfProcessesThatHaveEndedGo(t *testing.T) {
	gone, err := Begin(About{RingDev: 1 << 40, RingInode: 2, PID: os.Getpid(), Start: 1, PIDNamespace: process.OwnPIDNamespace(), Folder: "/tmp/dumps"}, header)
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	other := ownNote(t, 3)
	defer other.Close()
	dir, err := runtimedir.Own()
	if err != nil {
		t.Fatal(err)
	}
	for inode, there := range map[uint64]bool{2: false, 3: true} {
		if files, _ := filepath.Glob(baseOf(dir, 1<<40, inode) + ".*"); len(files) > 0 != there {
			t.Errorf("%d: %q", inode, files)
		}
	}
}
