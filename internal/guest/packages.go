package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kernelPackage depends on the kernel for virtual machines: it is smaller than the general one.
const kernelPackage = "linux-image-cloud-arm64"

// packages are what the guest has, with all that they depend on.
var packages = []string{
	kernelPackage,
	"base-files", "base-passwd", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "hostname", "login", "mount",
	"ncurses-base", "procps", "sed", "tar", "util-linux", "xz-utils", "tzdata",
	"libc-bin", "libc6", "libc6-dbg", "libc6-dev", "gcc", "g++", "binutils", "gdb", "musl-tools",
	"redis-server", "redis-tools", "python3", "perl-base", "git", "nginx-light", "apache2-utils", "uftrace",
}

// forPrograms are what the programs of a soak need besides. Go's is built before.
var forPrograms = []string{"postgresql-15", "perl", "memcached", "ruby", "nodejs", "rustc"}

// keyring is that of Debian's archive, of the package debian-archive-keyring.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// An archive is where packages come from, and the folder that they are put into.
type archive struct {
	dir    string
	mirror string // of Debian's archive, "" for the usual one
	suite  string // besides those of the release, whose packages are taken first; "" for none
}

// sources are apt's.
func (a archive) sources() string {
	mirror := a.mirror
	if mirror == "" {
		mirror = "http://deb.debian.org"
	}
	suites := []string{"debian bookworm", "debian bookworm-updates", "debian-security bookworm-security"}
	if a.suite != "" {
		suites = append(suites, a.suite)
	}
	var b strings.Builder
	for _, suite := range suites {
		fmt.Fprintf(&b, "deb [arch=arm64 signed-by=%s] %s/%s main\n", keyring, mirror, suite)
	}
	return b.String()
}

// aptConfig leaves the state of the machine's own apt alone.
func aptConfig(dir string) string {
	return fmt.Sprintf(`APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State %[1]q;
Dir::State::status "%[1]s/status";
Dir::State::lists "%[1]s/lists";
Dir::Cache %[1]q;
Dir::Cache::archives "%[1]s/archives";
Dir::Log %[1]q;
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
`, dir)
}

// fetch downloads packages, and what they depend on, and returns their files. apt refuses what isn't signed by Debian.
func (a archive) fetch(ctx context.Context, packages []string, say func(string, ...any)) ([]string, error) {
	dir := a.dir
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("guest: Debian's keys: %w: install debian-archive-keyring", err)
	}
	for _, d := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(dir, "apt.conf")
	for name, text := range map[string]string{config: aptConfig(dir), filepath.Join(dir, "sources.list"): a.sources(), filepath.Join(dir, "status"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	apt := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-y"}, args...)...)
		cmd.Env = append(os.Environ(), "APT_CONFIG="+config, "DEBIAN_FRONTEND=noninteractive")
		return quiet(cmd, "apt-get "+args[0])
	}
	say("fetching Debian's arm64 packages")
	if err := apt("update", "--error-on=any"); err != nil {
		return nil, err
	}
	install := []string{"install", "--download-only"}
	if _, suite, ok := strings.Cut(a.suite, " "); ok {
		install = append(install, "--target-release", suite)
	}
	if err := apt(append(install, packages...)...); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "archives", "*.deb"))
	if err == nil && len(files) == 0 {
		err = errors.New("guest: apt-get has fetched nothing")
	}
	return files, err
}
