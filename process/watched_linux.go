package process

import (
	"path/filepath"
	"strconv"
	"strings"
)

// maxWatched bounds what is read of an epoll instance, in bytes: some thirty descriptors. It may watch a hundred thousand.
const maxWatched = 4 << 10

// Watched returns descriptors that an epoll instance watches, by a descriptor of a process, some of them if they are many; nil if it is no
// such instance.
func Watched(pid, fd int) []int {
	var buf [maxWatched]byte
	text, err := readOnce(filepath.Join(procPath(pid, "fdinfo"), strconv.Itoa(fd)), buf[:])
	if err != nil {
		return nil // it is closed
	}
	return parseWatched(string(text))
}

// parseWatched reads the lines of descriptors (proc_pid_fdinfo(5)); the last may be cut.
func parseWatched(text string) (list []int) {
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, "tfd:")
		if !is || !strings.HasSuffix(line, "\n") {
			continue
		}
		if number := strings.Fields(rest); len(number) > 0 {
			if n, err := strconv.Atoi(number[0]); err == nil && n >= 0 {
				list = append(list, n)
			}
		}
	}
	return list
}
