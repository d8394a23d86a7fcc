package process

import (
	"os"
)

// OtherRoot returns the folder in which a process's files are found from here, if it sees other files than we do: those of a container,
// say. It is good while the process lives. What is below it is the process's: links there may lead anywhere.
func OtherRoot(pid int) (dir string, ok bool) {
	dir = procPath(pid, "root")
	theirs, err := os.Stat(dir)
	if err != nil {
		return "", false
	}
	ours, err := os.Stat("/")
	if err != nil {
		return "", false
	}
	mounts, err := os.Readlink(procPath(pid, "ns/mnt"))
	own, ownErr := os.Readlink("/proc/self/ns/mnt")
	same := err != nil || ownErr != nil || mounts == own
	return dir, !same || !os.SameFile(theirs, ours)
}
