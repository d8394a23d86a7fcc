package recorder

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// availableMemory is how many bytes this process could take without pushing others out: what the machine has
// (MemAvailable of proc_meminfo(5)) and what its control groups leave (memory.max of cgroup v2, memory.limit_in_bytes of
// v1). It is the largest number there is where neither can be read.
func availableMemory() uint64 {
	left := ^uint64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		_, rest, found := strings.Cut(string(text), "MemAvailable:")
		if fields := strings.Fields(rest); found && len(fields) > 0 {
			if kib, err := strconv.ParseUint(fields[0], 10, 54); err == nil {
				left = kib << 10
			}
		}
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return left
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0":
			left = min(left, leftInGroups("/sys/fs/cgroup", parts[2], "memory.max", "memory.current"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			left = min(left, leftInGroups("/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes"))
		}
	}
	return left
}

// leftInGroups is the least that a group or one above it leaves.
func leftInGroups(root, path, limit, usage string) uint64 {
	left := ^uint64(0)
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		most, err1 := readNumber(filepath.Join(root, path, limit))
		used, err2 := readNumber(filepath.Join(root, path, usage))
		if err1 == nil && err2 == nil {
			left = min(left, most-min(used, most))
		}
		if path == "/" {
			return left
		}
	}
}

func readNumber(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
