package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
)

// Machine checks this machine. What matters most is tried for real, on processes started for it.
func Machine(ctx context.Context, o Options) []Check {
	if process.CodeSupported() != nil {
		return []Check{unsupported()}
	}
	return append([]Check{
		kernel(),
		permission(),
		namespaces(),
		memory(),
		memfd(),
		writeText(ctx, o.Self),
		recording(ctx),
		clock(),
		scheduling(ctx),
		seccomp(),
		shadowStack(),
		addressSpace(),
		disk(o.Folder),
	}, pages(os.Getpagesize())...)
}

// readLine reads a file of one line; empty if there is none.
func readLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// kernel checks the version: the address of a mapping can be asked for without risk since Linux 4.17
// (MAP_FIXED_NOREPLACE), and memory be made present ahead since 5.14 (MADV_POPULATE_WRITE).
func kernel() Check {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return warning("kernel", "", "its version can't be read: %v", err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	major, minor, known := kernelVersion(release)
	switch before := func(a, b int) bool { return major < a || major == a && minor < b }; {
	case !known:
		return warning("kernel", "", "Linux of unknown version %q on %s", release, runtime.GOARCH)
	case before(4, 17):
		return no("kernel", "Linux 4.17 or newer is needed", "Linux %s on %s", release, runtime.GOARCH)
	case before(5, 14):
		return warning("kernel", "with Linux 5.14 or newer a recording's first events cost less", "Linux %s on %s", release, runtime.GOARCH)
	}
	return ok("kernel", "Linux %s on %s", release, runtime.GOARCH)
}

// kernelVersion reads the first two numbers of a release such as 6.12.9-amd64.
func kernelVersion(release string) (major, minor int, known bool) {
	a, rest, found := strings.Cut(release, ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(rest[:end])
	return major, minor, found && err1 == nil && err2 == nil
}

const (
	capSysPtrace = 19
	capSysAdmin  = 21
)

// permission says which processes may be traced (ptrace(2), "Ptrace access mode checking").
func permission() Check {
	return mayTrace(os.Geteuid(), process.HasCapability(capSysPtrace), readLine("/proc/sys/kernel/yama/ptrace_scope"))
}

func mayTrace(uid int, capable bool, yama string) Check {
	const (
		name  = "permission"
		scope = "kernel.yama.ptrace_scope"
	)
	switch {
	case yama == "3":
		return no(name, "set "+scope+" below 3 where it is set at boot, and boot again", "%s is 3: no process can be traced until the next boot", scope)
	case capable:
		return ok(name, "CAP_SYS_PTRACE is held: processes of all users")
	case yama == "2":
		return no(name, "run as root, or with CAP_SYS_PTRACE; or sysctl "+scope+"=0", "%s is 2, and user %d lacks CAP_SYS_PTRACE", scope, uid)
	case yama == "1":
		return warning(name, "sysctl "+scope+"=0, or run as root (CAP_SYS_PTRACE)", "%s is 1: only what callreel starts itself (record -- CMD)", scope)
	}
	return warning(name, "for others, run as root (CAP_SYS_PTRACE); in a container, --cap-add SYS_PTRACE", "user %d's own processes only", uid)
}

// Inode numbers of the first namespaces (include/linux/proc_ns.h: PROC_PID_INIT_INO, PROC_USER_INIT_INO).
const (
	firstPIDNamespace  = "pid:[4026531836]"
	firstUserNamespace = "user:[4026531837]"
)

// namespaces says what is out of sight.
func namespaces() Check {
	const name = "namespaces"
	pid, _ := os.Readlink("/proc/self/ns/pid")
	user, _ := os.Readlink("/proc/self/ns/user")
	switch {
	case user != "" && user != firstUserNamespace:
		return warning(name, "run outside it, as root, for all others", "in a user namespace (a rootless container?): only its processes can be traced")
	case pid != "" && pid != firstPIDNamespace:
		return warning(name, "run on the host, or with --pid=host, for all others", "in a PID namespace (a container?): only its processes can be seen")
	}
	return ok(name, "the machine's own: all processes can be seen")
}

// memory tries the ways of mapping memory that a target has to have. Our own kernel is the target's.
func memory() Check {
	const (
		name       = "memory"
		wipeOnFork = 18 // MADV_WIPEONFORK, Linux 4.14
		update     = "a kernel of Linux 4.17 or newer is needed"
	)
	size := os.Getpagesize()
	page, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return no(name, "free some memory, or raise ulimit -v", "no page can be mapped: %v", err)
	}
	defer unix.Munmap(page)
	if err := unix.Madvise(page, wipeOnFork); err != nil {
		return no(name, update, "MADV_WIPEONFORK: %v: a forked child would go on recording", err)
	}
	return ok(name, "can be wiped in forked children (MADV_WIPEONFORK)")
}

// memfd tries the memory that is shared with the target.
func memfd() Check {
	const name = "memfd"
	fd, err := unix.MemfdCreate("callreel-doctor", unix.MFD_CLOEXEC)
	if err != nil {
		return no(name, "allow the system call memfd_create in the container's policy", "memfd_create: %v", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(os.Getpagesize())); err != nil {
		return no(name, "raise ulimit -f", "a memfd can't grow: %v", err)
	}
	return ok(name, "memory can be shared with a process")
}

// cpuFlags returns the first processor's flags, which are in a field of /proc/cpuinfo.
func cpuFlags(field string) []string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		if key, value, found := bytes.Cut(line, []byte(":")); found && string(bytes.TrimSpace(key)) == field {
			return strings.Fields(string(value))
		}
	}
	return nil
}

// seccomp says whether the filters of processes that have some can be read (PTRACE_SECCOMP_GET_FILTER in ptrace(2)).
func seccomp() Check {
	const name = "seccomp"
	if own := statusField("Seccomp"); own != "" && own != "0" {
		return warning(name, "for such processes, run outside of what filters callreel itself; in a container, --security-opt seccomp=unconfined",
			"callreel itself runs under a filter, so the filters of other processes can't be read: processes that have one are refused")
	}
	if !process.HasCapability(capSysAdmin) {
		return warning(name, "for such processes (browsers, containers), run as root (CAP_SYS_ADMIN)", "filters can't be read without CAP_SYS_ADMIN: processes that have one are refused")
	}
	return ok(name, "filters can be read: processes that have one can be recorded if it lets them")
}

// statusField reads a field of our own /proc/self/status.
func statusField(field string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// addressSpace looks at the limit that commands inherit from us.
func addressSpace() Check {
	const (
		name = "address space"
		need = 1 << 30 // rings, stubs, and as much again
	)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil {
		return warning(name, "", "its limit can't be read: %v", err)
	}
	switch {
	case limit.Cur == unix.RLIM_INFINITY:
		return ok(name, "not limited")
	case limit.Cur < need:
		return warning(name, "raise ulimit -v, or give record a smaller --ring", "limited to %d MiB, for commands that callreel starts too", limit.Cur>>20)
	}
	return ok(name, "limited to %d MiB", limit.Cur>>20)
}

// disk looks at how much space there is for reels.
func disk(folder string) Check {
	const (
		name  = "disk"
		small = 1 << 30 // some seconds of the busiest program
	)
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return warning(name, "write reels elsewhere: record -o", "%s: %v", folder, err)
	}
	free := st.Bavail * uint64(st.Bsize)
	text := fmt.Sprintf("%.1f GiB free in %s", float64(free)/(1<<30), folder)
	if unix.Access(folder, unix.W_OK) != nil {
		return warning(name, "write reels elsewhere: record -o", "%s can't be written to", folder)
	}
	if free < small {
		return warning(name, "free some, or write reels elsewhere: record -o", "%s", text)
	}
	return ok(name, "%s", text)
}
