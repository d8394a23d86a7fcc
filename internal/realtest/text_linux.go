package realtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The remains of a recorder in a process are judged here without callreel: from
// /proc/PID/maps, /proc/PID/mem and the files alone.

// A Region is one line of /proc/PID/maps (proc_pid_maps(5)).
type Region struct {
	Start, End, Offset uint64
	Perm, Path         string
}

// RegionsOf returns the mappings of a process.
func RegionsOf(pid int) ([]Region, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	var regions []Region
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r Region
		var device string
		var inode uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %4s %x %s %d", &r.Start, &r.End, &r.Perm, &r.Offset, &device, &inode); err != nil {
			return nil, fmt.Errorf("maps line %q: %w", lines.Text(), err)
		}
		if fields := strings.Fields(lines.Text()); len(fields) > 5 {
			r.Path = strings.Join(fields[5:], " ")
		}
		regions = append(regions, r)
	}
	return regions, nil
}

// TextAsFile returns an error for the first byte of the process's executable,
// file-backed memory that is not the file's.
func TextAsFile(pid int) error {
	regions, err := RegionsOf(pid)
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
		if !strings.HasPrefix(r.Path, "/") || r.Perm[2] != 'x' || strings.HasPrefix(r.Path, "/memfd:") {
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

// compare compares the memory of an executable mapping with its file. What the
// last page has behind the file's end is zero.
func (r Region) compare(mem io.ReaderAt, pid int) error {
	got, want := make([]byte, r.End-r.Start), make([]byte, r.End-r.Start)
	if _, err := mem.ReadAt(got, int64(r.Start)); err != nil {
		return fmt.Errorf("%s at %#x: %w", r.Path, r.Start, err)
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, r.Start, r.End))
	if errors.Is(err, os.ErrPermission) {
		file, err = os.Open(r.Path)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.ReadAt(want, int64(r.Offset)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range got {
		if got[i] != want[i] {
			n := min(i+16, len(got))
			return fmt.Errorf("text of %s at %#x (file offset %#x) is % x, the file has % x",
				filepath.Base(r.Path), r.Start+uint64(i), r.Offset+uint64(i), got[i:n], want[i:n])
		}
	}
	return nil
}

// RemainsIn returns the mappings of a recorder that are still in the process.
func RemainsIn(pid int) ([]Region, error) {
	regions, err := RegionsOf(pid)
	if err != nil {
		return nil, err
	}
	var left []Region
	for _, r := range regions {
		if strings.Contains(r.Path, "callreel") && !strings.HasPrefix(r.Path, "/") || strings.HasPrefix(r.Path, "/memfd:callreel") {
			left = append(left, r)
		}
	}
	return left, nil
}
