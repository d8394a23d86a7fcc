package recorder_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// What a recorder has left in a process is judged here without callreel: from
// /proc/PID/maps, /proc/PID/mem and the files alone.

// A region is one line of /proc/PID/maps (proc_pid_maps(5)).
type region struct {
	start, end, offset uint64
	perm, path         string
}

func regionsOf(pid int) ([]region, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	var regions []region
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r region
		var device string
		var inode uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %4s %x %s %d", &r.start, &r.end, &r.perm, &r.offset, &device, &inode); err != nil {
			return nil, fmt.Errorf("maps line %q: %w", lines.Text(), err)
		}
		if fields := strings.Fields(lines.Text()); len(fields) > 5 {
			r.path = strings.Join(fields[5:], " ")
		}
		regions = append(regions, r)
	}
	return regions, nil
}

// textAsFile returns an error for the first byte of the process's executable,
// file-backed memory that is not the file's.
func textAsFile(pid int) error {
	regions, err := regionsOf(pid)
	if err != nil {
		return err
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer mem.Close()
	compared := 0
	for _, r := range regions {
		if !strings.HasPrefix(r.path, "/") || r.perm[2] != 'x' || strings.HasPrefix(r.path, "/memfd:") {
			continue
		}
		if err := r.compare(mem, pid); err != nil {
			return err
		}
		compared++
	}
	if compared == 0 {
		return fmt.Errorf("process %d has no text", pid)
	}
	return nil
}

// compare holds the memory of an executable mapping against its file. What the
// last page has behind the file's end is zero.
func (r region) compare(mem io.ReaderAt, pid int) error {
	got, want := make([]byte, r.end-r.start), make([]byte, r.end-r.start)
	if _, err := mem.ReadAt(got, int64(r.start)); err != nil {
		return fmt.Errorf("%s at %#x: %w", r.path, r.start, err)
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, r.start, r.end))
	if errors.Is(err, os.ErrPermission) {
		file, err = os.Open(r.path)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.ReadAt(want, int64(r.offset)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for i := range got {
		if got[i] != want[i] {
			n := min(i+16, len(got))
			return fmt.Errorf("text of %s at %#x (file offset %#x) is % x, the file has % x",
				filepath.Base(r.path), r.start+uint64(i), r.offset+uint64(i), got[i:n], want[i:n])
		}
	}
	return nil
}

// leftIn returns the mappings of a recorder that are still in the process.
func leftIn(pid int) ([]region, error) {
	regions, err := regionsOf(pid)
	if err != nil {
		return nil, err
	}
	var left []region
	for _, r := range regions {
		if strings.Contains(r.path, "callreel") && !strings.HasPrefix(r.path, "/") || strings.HasPrefix(r.path, "/memfd:callreel") {
			left = append(left, r)
		}
	}
	return left, nil
}

// wantUntouched fails the test unless the process's text is its files', byte for
// byte, and nothing of a recorder is mapped in it.
func wantUntouched(t testing.TB, pid int) {
	t.Helper()
	if err := textAsFile(pid); err != nil {
		t.Fatalf("after detaching: %v", err)
	}
	left, err := leftIn(pid)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Fatalf("after detaching there is still %+v", left)
	}
}

// wantProbed fails the test unless the process is being recorded as DESIGN.md
// promises: text changed, no tracer attached, no page writable and executable.
func wantProbed(t testing.TB, pid int) {
	t.Helper()
	if err := textAsFile(pid); err == nil {
		t.Errorf("process %d is being recorded, but its text is unchanged", pid)
	}
	regions, err := regionsOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if r.perm[1] == 'w' && r.perm[2] == 'x' {
			t.Errorf("writable and executable at once: %+v", r)
		}
	}
	if tracer := statusField(t, pid, "TracerPid"); tracer != "0" {
		t.Errorf("while recording, process %s traces it", tracer)
	}
}

// statusField returns the first word of a field of /proc/PID/status.
func statusField(t testing.TB, pid int, key string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Fields(rest)[0]
		}
	}
	t.Fatalf("/proc/%d/status has no %s", pid, key)
	return ""
}

// needLive ends the test on machines where nothing can be recorded.
func needLive(t testing.TB, caps ...realtest.Capability) {
	t.Helper()
	realtest.Need(t, append(caps, realtest.LivePtrace, realtest.GCC)...)
}
