package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/runtimedir"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Sockets of recorders are in a folder of their user's own, where nobody else can make, see or remove them. They are reached by
// descriptors of the folder and of the socket, through /proc/self/fd: a socket's address has 107 bytes at most (unix(7)), and what
// a path leads to may change.

// prefix begins the sockets' names.
const prefix = "control-"

// nameOf names the socket of a process's recorder. The ID that a process has in its own PID namespace, with that namespace, is the
// same from wherever it is looked at; the start time tells it from one that had the ID before.
func nameOf(pid int) (string, error) {
	status, err := process.StatusOf(pid, pid)
	if err != nil {
		return "", err
	}
	start, err := process.StartTime(pid, pid)
	if err != nil {
		return "", err
	}
	namespace, err := process.Namespace(pid, "pid")
	if err != nil {
		return "", err
	}
	own := pid
	if n := len(status.NSPIDs); n > 0 {
		own = status.NSPIDs[n-1]
	}
	return fmt.Sprintf("%s%d-%d-%d", prefix, namespace, own, start), nil
}

// place is where a socket is.
type place struct {
	dir  *os.File // O_PATH
	name string
	ino  uint64 // of the socket
}

func listenAt(pid int) (*net.UnixListener, *place, error) {
	name, err := nameOf(pid)
	if err != nil {
		return nil, nil, err
	}
	dir, err := runtimedir.Open()
	if err != nil {
		return nil, nil, err
	}
	at := &place{dir: dir, name: name}
	var l *net.UnixListener
	err = at.locked(func() error {
		at.sweep()
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: throughFD(dir) + "/" + name, Net: "unix"}); err != nil {
			if errors.Is(err, unix.EADDRINUSE) {
				return target.ErrRecorded
			}
			return err
		}
		l.SetUnlinkOnClose(false) // by a path, that would be
		var st unix.Stat_t
		err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		at.ino = st.Ino
		return err
	})
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return nil, nil, errors.Join(err, dir.Close())
	}
	return l, at, nil
}

func throughFD(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// locked does something while no other recorder of this user's makes or removes a socket.
func (p *place) locked(f func() error) error {
	fd, err := unix.Openat(int(p.dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: p.dir.Name(), Err: err}
	}
	lock := os.NewFile(uintptr(fd), p.dir.Name())
	for {
		if err = unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return errors.Join(&fs.PathError{Op: "lock", Path: p.dir.Name(), Err: err}, lock.Close())
	}
	return errors.Join(f(), lock.Close())
}

// sweep removes the sockets of recorders that were killed: nobody listens at them. Others are bound only while the lock is held, by who
// listens before letting it go.
func (p *place) sweep() {
	list, err := os.ReadDir(throughFD(p.dir))
	if err != nil {
		return // then they stay
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), prefix) || e.Type() != fs.ModeSocket {
			continue
		}
		conn, err := net.DialTimeout("unix", throughFD(p.dir)+"/"+e.Name(), lineTimeout)
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, unix.ECONNREFUSED) {
			_ = unix.Unlinkat(int(p.dir.Fd()), e.Name(), 0) // another day, then
		}
	}
}

// leave removes the socket, if it is still the one that was made.
func (p *place) leave() {
	_ = p.locked(func() error { // a socket that stays is swept by the next
		var st unix.Stat_t
		err := unix.Fstatat(int(p.dir.Fd()), p.name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && st.Ino == p.ino {
			err = unix.Unlinkat(int(p.dir.Fd()), p.name, 0)
		}
		return err
	})
	_ = p.dir.Close()
}

// dial connects to the recorder of a process. It looks in the folders of its own user, and root also in those of the process's.
// Whatever a folder of that user has under the name, root talks to nobody but that user: the socket and who listens at it are theirs.
func dial(ctx context.Context, pid int) (*net.UnixConn, error) {
	name, err := nameOf(pid)
	switch {
	case errors.Is(err, process.ErrNoProcess):
		return nil, ErrNobody
	case err != nil:
		return nil, err
	}
	var refused error
	for _, uid := range recordersOf(pid) {
		for _, dir := range runtimedir.OpenAll(uid, runtimeDirOf(pid)) {
			conn, err := dialIn(ctx, dir, name, uid)
			_ = dir.Close() // an O_PATH descriptor
			if err == nil {
				return conn, nil
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ECONNREFUSED) {
				refused = err
			}
		}
	}
	if refused != nil {
		return nil, refused
	}
	return nil, ErrNobody
}

// recordersOf are the users whose recorders may be asked about a process: oneself, and for root whoever the process belongs to.
func recordersOf(pid int) []int {
	own := os.Geteuid()
	uids := []int{own}
	if own != 0 {
		return uids
	}
	status, err := process.StatusOf(pid, pid)
	if err != nil {
		return uids
	}
	for _, uid := range status.UIDs {
		if !slices.Contains(uids, uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// runtimeDirOf is the XDG_RUNTIME_DIR that a process was started with, which is likely to be its recorder's. It is only another place to look
// at: what is there has to be the user's all the same.
func runtimeDirOf(pid int) string {
	dir, _ := process.Getenv(pid, "XDG_RUNTIME_DIR")
	return dir
}

// dialIn connects to a socket in a folder, if both it and who listens are a certain user's.
func dialIn(ctx context.Context, dir *os.File, name string, uid int) (*net.UnixConn, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	socket := os.NewFile(uintptr(fd), name)
	defer socket.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != uid {
		return nil, fmt.Errorf("%s/%s: %w: it is no socket of user %d", dir.Name(), name, fs.ErrPermission, uid)
	}
	d := net.Dialer{Timeout: lineTimeout}
	conn, err := d.DialContext(ctx, "unix", throughFD(socket))
	if err != nil {
		return nil, err
	}
	peer, err := peerOf(conn.(*net.UnixConn))
	if err == nil && int(peer.Uid) != uid {
		err = fmt.Errorf("%w: who listens is user %d, not %d", fs.ErrPermission, peer.Uid, uid)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn.(*net.UnixConn), nil
}

// peerOf says who the other side is: for who listens, as it was when that began.
func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return cred, errors.Join(cerr, err)
}

// mayAsk says why the other side may not ask: it is neither the same user nor root.
func mayAsk(conn *net.UnixConn) error {
	cred, err := peerOf(conn)
	if err == nil && cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		err = fmt.Errorf("%w: it belongs to user %d", os.ErrPermission, cred.Uid)
	}
	return err
}

// lineTimeout is how long a side has for its line.
const lineTimeout = 5 * time.Second
