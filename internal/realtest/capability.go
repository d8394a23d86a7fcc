package realtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A Capability is one thing that a test needs and a machine may lack.
type Capability string

// The capabilities that tests ask for. The string is what a skip message names.
const (
	GCC            Capability = "gcc"                 // C compiler, x86-64 Linux output
	GXX            Capability = "g++"                 // C++ compiler with its run-time library
	Musl           Capability = "musl-gcc"            // C compiler against musl
	Binutils       Capability = "as and ld"           // GNU assembler and linker that know i386
	Clang          Capability = "clang-19"            // LLVM's C and C++ compiler, for many targets
	LLVMDwp        Capability = "llvm-dwp-19"         // LLVM's packager of split DWARF
	LD64           Capability = "ld64.lld-19"         // LLVM's linker of Mach-O
	Dsymutil       Capability = "dsymutil-19"         // LLVM's linker of Mach-O debug information
	Symbolizer     Capability = "llvm-symbolizer-19"  // LLVM's symbolizer
	GFortran       Capability = "gfortran"            // Fortran compiler
	Dwz            Capability = "dwz"                 // DWARF optimizer
	Objcopy        Capability = "objcopy"             // GNU objcopy
	LLVMObjcopy    Capability = "llvm-objcopy-19"     // LLVM's objcopy, for Mach-O too
	LLVMObjdump    Capability = "llvm-objdump-19"     // LLVM's disassembler, for Mach-O too
	LLVMMc         Capability = "llvm-mc-19"          // LLVM's assembler
	LLVMNm         Capability = "llvm-nm-19"          // LLVM's lister of symbols
	LLVMLipo       Capability = "llvm-lipo-19"        // LLVM's maker of fat Mach-O files
	LLVMCxxfilt    Capability = "llvm-cxxfilt-19"     // LLVM's demangler, for Rust too
	LLVMAr         Capability = "llvm-ar-19"          // LLVM's archiver, for Mach-O too
	Dwarfdump      Capability = "llvm-dwarfdump-19"   // LLVM's printer of DWARF
	GoTool         Capability = "go"                  // Go's own toolchain, for every target
	Rustc          Capability = "rustc"               // Rust compiler
	FreePascal     Capability = "fpc"                 // Pascal compiler with a run-time library of its own
	GHC            Capability = "ghc"                 // Haskell compiler, which puts tables among its code
	Objdump        Capability = "objdump"             // GNU disassembler
	Readelf        Capability = "readelf"             // GNU printer of ELF files and their CFI
	Unshare        Capability = "unshare"             // starts programs in namespaces of their own
	Setpriv        Capability = "setpriv"             // starts programs with fewer rights
	GDB            Capability = "gdb"                 // debugger
	Node           Capability = "node"                // Node.js, whose compiler writes down what it makes
	Mono           Capability = "mono"                // runtime and JIT compiler of .NET programs
	MonoC          Capability = "mcs"                 // Mono's C# compiler
	Ruby           Capability = "ruby"                // Ruby's own interpreter
	Boost          Capability = "Boost.Context"       // Boost's fibers, for C++
	RedisTools     Capability = "redis-server"        // with redis-benchmark
	PHP            Capability = "php"                 // PHP's command-line interpreter
	Postgres       Capability = "postgres"            // SQL database, with psql and pgbench
	OpenSSL        Capability = "openssl"             // command-line tool of the TLS library
	WebServer      Capability = "nginx"               // web server
	ApacheBench    Capability = "ab"                  // HTTP load
	Python3        Capability = "python3"             // the distribution's CPython
	LivePtrace     Capability = "ptrace on Linux"     // permission to trace one's own children
	PerfEvents     Capability = "perf events"         // the kernel's software clock for one's own children
	Breakpoints    Capability = "perf breakpoints"    // the processor's breakpoints for one's own children
	I386           Capability = "i386 programs"       // a kernel that runs 32-bit x86
	AMD64          Capability = "x86-64"              // the machine's own processor, for which its compilers make code
	QEMUARM64      Capability = "qemu-aarch64-static" // emulator of programs for 64-bit Arm
	Chromium       Capability = "chromium"            // web browser
	NPMReaders     Capability = "readers of exports"  // trace_processor and speedscope, as export/testdata/readers/package-lock.json has them
	Superuser      Capability = "root"                // the right to start processes as another user
	TraceViewer    Capability = "Go's trace viewer"   // Chrome's trace viewer, which Go's distribution has for go tool trace
	Bash           Capability = "bash"                // shell whose completion is tested
	Zsh            Capability = "zsh"                 // the same
	Fish           Capability = "fish"                // the same
	Lintian        Capability = "lintian"             // Debian's checker of packages
	RPM            Capability = "rpm"                 // reader and checker of .rpm files
	VersityGW      Capability = "versitygw"           // S3 service over a folder
	Debuginfod     Capability = "debuginfod"          // elfutils' server of debug files
	DebuginfodFind Capability = "debuginfod-find"     // and its client
	CleanChroot    Capability = "a clean chroot"      // mmdebstrap, and root's right to mount: see [CleanRoot]
)

// Uftrace is a tracer of functions.
const Uftrace Capability = "uftrace"

// InstructionCounter is the processor's, of one's own instructions in user space. An emulated processor has it if it counts instructions.
const InstructionCounter Capability = "a counter of instructions"

// ObjdumpARM64 is the GNU disassembler for 64-bit Arm.
const ObjdumpARM64 Capability = "aarch64-linux-gnu-objdump"

// The compilers of C and C++ for 64-bit Arm, with a C library and C++'s, which [QEMUARM64] runs.
const (
	GCCARM64 Capability = "aarch64-linux-gnu-gcc"
	GXXARM64 Capability = "aarch64-linux-gnu-g++"
)

// LLD is LLVM's linker of ELF files, for every processor.
const LLD Capability = "ld.lld-19"

// ErrMissing is wrapped by the error of [Capability.Find] when the machine
// lacks the capability.
var ErrMissing = errors.New("capability missing")

// ErrMachine is wrapped besides [ErrMissing] where the machine or its kernel lacks what is asked for: nothing that can be installed gives it, so CI
// can't have it on every machine.
var ErrMachine = errors.New("this machine, or its kernel, has none")

// Find returns the path of the program behind c, or an error that wraps
// [ErrMissing]. Capabilities that are no program return an empty path.
func (c Capability) Find() (string, error) {
	switch c {
	case LivePtrace:
		return "", canTrace()
	case PerfEvents:
		return "", canSample()
	case Breakpoints:
		return "", canBreak()
	case InstructionCounter:
		return "", canCount()
	case I386:
		return "", canRunI386()
	case AMD64:
		return "", isAMD64()
	case Superuser:
		return "", isRoot()
	case CleanChroot:
		return "", canMakeRoot()
	case Python3:
		return findPython()
	case Binutils:
		return findFirst(c, "ld")
	case Boost:
		return findFile(c, "/usr/include/boost/context/fiber.hpp")
	case NPMReaders:
		return findFile(c, filepath.Join(Root(), "export", "testdata", "readers", "node_modules", ".package-lock.json"))
	case TraceViewer:
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return "", fmt.Errorf("%w: %s: go env: %w", ErrMissing, c, err)
		}
		return findFile(c, filepath.Join(strings.TrimSpace(string(root)), "src", "internal", "trace", "traceviewer", "static", "trace_viewer_full.html"))
	case VersityGW:
		return findVersityGW()
	case Postgres:
		// Debian has several versions at a time, and none on the PATH.
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
		return findFirst(c, append(found, "postgres")...)
	case WebServer:
		// Debian keeps it in sbin, which is not on every user's PATH.
		return findFirst(c, "nginx", "/usr/sbin/nginx")
	}
	return findFirst(c, string(c))
}

// Need returns when the machine has every one of caps. Otherwise it skips the
// test with a message that names the missing ones, or fails it when CI is set,
// unless it is the machine that lacks them.
func Need(t testing.TB, caps ...Capability) {
	t.Helper()
	for _, c := range caps {
		if _, err := c.Find(); err != nil {
			lack(t, err)
		}
	}
}

// NeedThat is Need for what is no Capability, such as a library, a system call or an option of a compiler's: it goes by an
// error, which is nil where the machine has it.
func NeedThat(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		lack(t, fmt.Errorf("%w: %s: %w", ErrMissing, what, err))
	}
}

// lack ends the test because of err: a skip for people, a failure in CI, where
// a skip would hide that a whole target is no longer tested.
func lack(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMachine) {
		t.Skipf("realtest: %v", err)
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("realtest: %v (CI must have it; scripts/need test installs it)", err)
	}
	t.Skipf("realtest: %v (scripts/need test installs it)", err)
}

// Tool returns the path of the program behind c, or ends the test as Need does.
func Tool(t testing.TB, c Capability) string {
	t.Helper()
	path, err := c.Find()
	if err != nil {
		lack(t, err)
	}
	return path
}

func findFirst(c Capability, names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrMissing, c)
}

func findFile(c Capability, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrMissing, c, err)
	}
	return path, nil
}

// findPython prefers the distribution's interpreter: version managers put shell
// scripts named python3 on the PATH, and a test would then trace a shell.
func findPython() (string, error) {
	for _, path := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real, nil
		}
	}
	path, err := findFirst(Python3, "python3")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(path, "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrMissing, Python3, err)
	}
	return filepath.EvalSymlinks(string(out))
}

func isAMD64() error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: %s: this is %s", ErrMissing, AMD64, runtime.GOARCH)
	}
	return nil
}

func canRunI386() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: %s: needs linux/amd64, this is %s/%s", ErrMissing, I386, runtime.GOOS, runtime.GOARCH)
	}
	return runsI386()
}
