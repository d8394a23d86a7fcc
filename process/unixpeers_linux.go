package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// What sock_diag(7) is asked for, and answers with (linux/sock_diag.h, linux/unix_diag.h).
const (
	sockDiagByFamily = 20
	udiagShowPeer    = 4
	unixDiagPeer     = 2
	unixDiagHeader   = 16 // bytes of struct unix_diag_msg
)

// maxUnixPeers bounds how many sockets are read.
const maxUnixPeers = 1 << 16

// UnixPeers returns the Unix sockets that are connected, by their inodes, with the inode of the other end, of the network namespace that a
// process is in. It must be our own: the kernel tells of that only.
func UnixPeers(pid int) (map[uint64]uint64, error) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("callreel: %w", err)
	}
	if is, err := os.Readlink(procPath(pid, "ns/net")); err != nil || is != own {
		return nil, fmt.Errorf("callreel: process %d is in another network namespace", pid)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("callreel: asking for the peers of Unix sockets: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return nil, fmt.Errorf("callreel: asking for the peers of Unix sockets: %w", err)
	}
	request := make([]byte, unix.NLMSG_HDRLEN+24)
	ne := binary.NativeEndian
	ne.PutUint32(request, uint32(len(request)))
	ne.PutUint16(request[4:], sockDiagByFamily)
	ne.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	q := request[unix.NLMSG_HDRLEN:] // struct unix_diag_req
	q[0] = unix.AF_UNIX
	ne.PutUint32(q[4:], ^uint32(0)) // of all states
	ne.PutUint32(q[12:], udiagShowPeer)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("callreel: asking for the peers of Unix sockets: %w", err)
	}
	peers := map[uint64]uint64{}
	buf := make([]byte, 64<<10)
	for len(peers) < maxUnixPeers {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("callreel: asking for the peers of Unix sockets: %w", err)
		}
		more, err := readUnixPeers(buf[:n], peers)
		if err != nil || !more {
			return peers, err
		}
	}
	return peers, nil
}

// readUnixPeers takes the peers out of some messages. more says that others follow.
func readUnixPeers(b []byte, peers map[uint64]uint64) (more bool, err error) {
	ne := binary.NativeEndian
	for len(b) >= unix.NLMSG_HDRLEN {
		size, kind := ne.Uint32(b), ne.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || uint64(size) > uint64(len(b)) {
			return false, fmt.Errorf("callreel: the peers of Unix sockets: a message of %d bytes in %d", size, len(b))
		}
		body := b[unix.NLMSG_HDRLEN:size]
		b = b[min(len(b), int(size+3)&^3):]
		switch kind {
		case unix.NLMSG_DONE:
			return false, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, errShortMessage
			}
			return false, fmt.Errorf("callreel: the peers of Unix sockets: %w", unix.Errno(-int32(ne.Uint32(body))))
		case sockDiagByFamily:
			if len(body) < unixDiagHeader {
				return false, errShortMessage
			}
			inode := uint64(ne.Uint32(body[4:]))
			for at := body[unixDiagHeader:]; len(at) >= 4; {
				n, what := int(ne.Uint16(at)), ne.Uint16(at[2:])
				if n < 4 || n > len(at) {
					return false, errShortMessage
				}
				if what == unixDiagPeer && n >= 8 {
					peers[inode] = uint64(ne.Uint32(at[4:]))
				}
				at = at[min(len(at), (n+3)&^3):]
			}
		}
	}
	return true, nil
}

var errShortMessage = errors.New("callreel: the peers of Unix sockets: a message is too short")
