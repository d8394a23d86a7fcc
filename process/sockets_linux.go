package process

import (
	"bufio"
	"io"
	"os"
)

// socketTables are those of /proc/PID/net that name sockets which threads wait for.
var socketTables = [...]struct {
	name  string
	parse func(line []byte) (Socket, bool)
}{
	{"tcp", parseInetSocket}, {"tcp6", parseInetSocket}, {"unix", parseUnixSocket}, {"udp", parseInetSocket}, {"udp6", parseInetSocket},
}

// maxSocketTable bounds what is read of one table, in bytes: some 100,000 sockets.
const maxSocketTable = 16 << 20

// Sockets finds sockets of the network namespace that a process is in, by their inodes. Those that aren't there, or beyond the first
// 100,000 or so, are missing. Reading takes about a microsecond for each socket that there is.
func Sockets(pid int, wanted map[uint64]bool) map[uint64]Socket {
	found := map[uint64]Socket{}
	for _, table := range socketTables {
		if len(found) == len(wanted) {
			break
		}
		f, err := os.Open(procPath(pid, "net/"+table.name))
		if err != nil {
			continue // IPv6 may be off
		}
		lines := bufio.NewScanner(io.LimitReader(f, maxSocketTable))
		for len(found) < len(wanted) && lines.Scan() { // those that listen are first, and the kernel looks for others in all of a large table
			if s, ok := table.parse(lines.Bytes()); ok && wanted[s.Inode] {
				found[s.Inode] = s
			}
		}
		f.Close()
	}
	return found
}
