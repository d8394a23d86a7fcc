package scheduling

import (
	"cmp"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
)

// What it costs to name descriptors is bounded, since the target decides how many it has and how often they change.
const (
	maxLinks     = 512     // are read in a round, at some 2 µs
	maxSockets   = 1 << 12 // are remembered
	maxAsking    = 1 << 4  // processes have sockets to be looked for
	longLook     = 10 * time.Millisecond
	tablesShare  = 50 // at most one part in so many of the time goes into reading the tables of sockets
	tablesRest   = 50 * time.Millisecond
	watchedShare = 300             // the same of reading what an epoll instance watches, for each of these
	unknownSince = 2 * time.Second // after which a socket is looked for again that had no peer and didn't listen, or wasn't there
)

// objects says what descriptors stand for.
type objects struct {
	links   map[descriptor]string   // of this round: a descriptor may be another file's in the next
	watched map[descriptor]watching // what epoll instances watch
	sockets map[uint64]socketName   // by inode
	asked   map[int]map[uint64]bool // sockets that wait to be looked for, by process
	next    time.Time               // when tables may be read again
}

type descriptor struct {
	pid int
	fd  int32
}

// watching is what an epoll instance watches, up to when it is to be read again.
type watching struct {
	list  []watched
	until time.Time
}

type socketName struct {
	text  string // "" while it isn't known
	at    time.Time
	final bool // it stays what it is
	ends  process.Socket
	other uint64 // the inode of a Unix socket's other end, 0 if that isn't known
}

func newObjects() objects {
	return objects{links: map[descriptor]string{}, watched: map[descriptor]watching{}, sockets: map[uint64]socketName{}, asked: map[int]map[uint64]bool{}}
}

// round begins anew: descriptors may have changed.
func (o *objects) round(now time.Time) {
	clear(o.links)
	maps.DeleteFunc(o.watched, func(_ descriptor, w watching) bool { return !now.Before(w.until) })
}

// of says what a descriptor of a process stands for now; "" if that isn't known. Nothing that the process names is opened. A socket is
// called by its number: named knows more, behind look.
func (o *objects) of(pid int, fd uint64) string {
	if fd > 1<<31-1 {
		return ""
	}
	d := descriptor{pid, int32(fd)}
	link, found := o.links[d]
	if !found {
		if len(o.links) >= maxLinks {
			return ""
		}
		link, _ = process.FileOf(pid, int(fd)) // "" if it is closed
		o.links[d] = link
	}
	if inode, is := socketInode(link); is {
		o.ask(pid, inode)
	}
	return link
}

// named is an object by its name, if it is a socket whose ends are known.
func (o *objects) named(object string) string {
	if inode, is := socketInode(object); is {
		return cmp.Or(o.sockets[inode].text, object)
	}
	return object
}

// joined says whether what goes out by the second object comes in by the first: they are the ends of a pipe or of a connection, or a socket
// that listens and one that is connected to it.
func (o *objects) joined(in, out string) bool {
	if strings.HasPrefix(in, "pipe:[") {
		return in == out
	}
	i, isSocket := socketInode(in)
	j, are := socketInode(out)
	if !isSocket || !are || i == j {
		return false
	}
	a, b := o.sockets[i], o.sockets[j]
	switch {
	case a.ends.Unix || b.ends.Unix:
		return a.other == j && b.other == i
	case !a.ends.Local.IsValid() || !b.ends.Remote.IsValid():
		return false
	case a.ends.Remote.IsValid():
		return a.ends.Local == b.ends.Remote && a.ends.Remote == b.ends.Local
	}
	at := a.ends.Local
	return at.Port() == b.ends.Remote.Port() && (at.Addr().IsUnspecified() || at.Addr() == b.ends.Remote.Addr())
}

// socketInode reads "socket:[123]".
func socketInode(link string) (uint64, bool) {
	number, isSocket := strings.CutPrefix(link, "socket:[")
	if !isSocket {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return inode, err == nil
}

// ask notes that a socket is to be looked for, unless that was done.
func (o *objects) ask(pid int, inode uint64) {
	s, known := o.sockets[inode]
	if known && (s.final || time.Since(s.at) < unknownSince) {
		return
	}
	wanted := o.asked[pid]
	if wanted == nil {
		if len(o.asked) >= maxAsking {
			return
		}
		wanted = map[uint64]bool{}
		o.asked[pid] = wanted
	}
	if len(wanted) < maxSockets {
		wanted[inode] = true
	}
}

// due returns the sockets that were asked for, by process, unless some were looked for just now.
func (o *objects) due(now time.Time) map[int]map[uint64]bool {
	if len(o.asked) == 0 || now.Before(o.next) {
		return nil
	}
	asked := o.asked
	o.asked = map[int]map[uint64]bool{}
	return asked
}

// found is what came of looking for sockets.
type found struct {
	names map[uint64]socketName
	took  time.Duration // of a processor's time: where others have the processor, it costs nothing
}

// lookFor looks for sockets in the tables of the processes' network namespaces, or of as many of these as there is time for.
func lookFor(asked map[int]map[uint64]bool) (f found) {
	if len(asked) == 0 {
		return f
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, used := time.Now(), threadCPU()
	f.names = map[uint64]socketName{}
	for pid, wanted := range asked {
		sockets := process.Sockets(pid, wanted)
		var peers map[uint64]uint64
		for _, s := range sockets {
			if s.Unix {
				peers, _ = process.UnixPeers(pid) // nil where that isn't permitted
				break
			}
		}
		for inode := range wanted {
			s := sockets[inode]
			name := socketName{at: began, final: s.Unix || s.Listens || s.Remote.IsValid(), ends: s, other: peers[inode]}
			if s.Inode != 0 {
				name.text = s.String()
			}
			f.names[inode] = name
		}
		if time.Since(began) >= longLook {
			break // the others are asked for again
		}
	}
	f.took = threadCPU() - used
	return f
}

// threadCPU is the processor time of this thread.
func threadCPU() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // it can't fail: each thread has that clock
	return time.Duration(t.Nano())
}

// learn takes in what came of looking.
func (o *objects) learn(f found, now time.Time) {
	if f.names == nil {
		return
	}
	if len(o.sockets)+len(f.names) > maxSockets {
		clear(o.sockets)
	}
	maps.Copy(o.sockets, f.names)
	o.next = now.Add(max(tablesRest, tablesShare*f.took))
}
