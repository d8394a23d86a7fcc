package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
)

// A Socket is one socket's line in a table of /proc/PID/net.
type Socket struct {
	Inode uint64
	// Local and Remote are its ends; Remote isn't valid for one that has no peer.
	Local, Remote netip.AddrPort
	// Path is, of a Unix socket, its name: "" if it has none.
	Path string
	Unix bool
	// Listens says that it waits for connections: it has no peer, and won't have one.
	Listens bool
}

// String is the socket in words: "socket 127.0.0.1:80 -> 127.0.0.1:5555", "socket 0.0.0.0:80", "unix socket /run/a".
// A path is as the process has chosen it.
func (s *Socket) String() string {
	switch {
	case s.Unix && s.Path == "":
		return "unix socket"
	case s.Unix:
		return "unix socket " + s.Path
	case s.Remote.IsValid():
		return "socket " + s.Local.String() + " -> " + s.Remote.String()
	}
	return "socket " + s.Local.String()
}

// parseInetSocket reads a line of tcp, tcp6, udp or udp6 (proc_pid_net(5)); ok is false for the heading and what is no such line.
func parseInetSocket(line []byte) (s Socket, ok bool) {
	fields := bytes.Fields(line)
	const local, remote, state, inode = 1, 2, 3, 9
	if len(fields) <= inode {
		return s, false
	}
	var err error
	if s.Inode, err = strconv.ParseUint(string(fields[inode]), 10, 64); err != nil || s.Inode == 0 {
		return s, false
	}
	if s.Local, ok = parseEnd(fields[local]); !ok {
		return s, false
	}
	if s.Remote, ok = parseEnd(fields[remote]); !ok {
		return s, false
	}
	if s.Remote.Port() == 0 && s.Remote.Addr().IsUnspecified() {
		s.Remote = netip.AddrPort{}
	}
	s.Listens = string(fields[state]) == "0A" // TCP_LISTEN
	return s, true
}

// parseEnd reads an address and a port in hexadecimal digits. The address's words of 32 bits are numbers of this machine's byte order.
func parseEnd(text []byte) (end netip.AddrPort, ok bool) {
	addr, port, found := bytes.Cut(text, []byte(":"))
	if !found || len(addr) != 8 && len(addr) != 32 {
		return end, false
	}
	var raw [16]byte
	n, err := hex.Decode(raw[:], addr)
	if err != nil {
		return end, false
	}
	for i := 0; i < n; i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	at, _ := netip.AddrFromSlice(raw[:n])
	number, err := strconv.ParseUint(string(port), 16, 16)
	if err != nil {
		return end, false
	}
	return netip.AddrPortFrom(at.Unmap(), uint16(number)), true
}

// parseUnixSocket reads a line of /proc/PID/net/unix.
func parseUnixSocket(line []byte) (s Socket, ok bool) {
	const inode = 6
	rest := line
	var field []byte
	for range inode + 1 {
		rest = bytes.TrimLeft(rest, " ")
		field, rest, _ = bytes.Cut(rest, []byte(" "))
	}
	var err error
	if s.Inode, err = strconv.ParseUint(string(field), 10, 64); err != nil || s.Inode == 0 {
		return s, false
	}
	s.Unix, s.Path = true, string(rest)
	return s, true
}
