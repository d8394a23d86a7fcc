package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// writers are the command lines that write something, which is to be at OUT.
func writers(t *testing.T) map[string][]string {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "count"), "1000", "100")
	pid := strconv.Itoa(target.Pid())
	made := makeReel(t, "main", "outer", "inner")
	program := realtest.Build(t, "count")
	programs := t.TempDir()
	text, err := os.ReadFile(program)
	realtest.Must(t, err)
	realtest.Must(t, os.WriteFile(filepath.Join(programs, "count"), text, 0o755))
	all := map[string][]string{
		"record":               {"record", "-p", pid, "-m", "count-*", "-d", "50ms", "-o", "OUT"},
		"record of a command":  {"record", "-o", "OUT", "--", "true"},
		"record's summary":     {"record", "--summary", "OUT", "-o", "OUT.reel", "--", "true"},
		"dumps":                {"record", "--when", "malloc > 1h", "-o", "OUT", "--", "true"}, // when it ends
		"sample":               {"sample", "-p", pid, "--wall", "-d", "50ms", "-o", "OUT"},
		"sample's summary":     {"sample", "-p", pid, "--wall", "-d", "50ms", "--format", "folded", "--summary", "OUT", "-o", "OUT.folded"},
		"a split export":       {"export", bigReel(t), "--format", "chrome", "--split", "64K", "-o", "OUT.json"},
		"a symbol map":         {"symbols", "build", "-o", "OUT", program},
		"a store":              {"symbols", "build", "-o", "OUT", programs},
		"a store in a folder":  {"symbols", "build", "-o", "OUT/deep/store", programs},
		"record that replaces": {"record", "-p", pid, "-m", "count-*", "-d", "50ms", "--force", "-o", "OUT"},
	}
	for name := range exportFormats {
		all["export to "+name] = []string{"export", made, "--format", name, "-o", "OUT"}
	}
	return all
}

// run runs callreel with a umask of its own.
func runWithUmask(t *testing.T, umask string, args []string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "umask " + umask + "; exec \"$@\"", "sh", realtest.CallreelPath(t)}, args...)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, said)
	}
}

// modes lists the modes of files and of folders below one.
func modes(t *testing.T, dir string) (files, folders map[fs.FileMode]string) {
	t.Helper()
	files, folders = map[fs.FileMode]string{}, map[fs.FileMode]string{}
	realtest.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if fi.IsDir() {
			folders[fi.Mode().Perm()] = path
		} else {
			files[fi.Mode()] = path
		}
		return nil
	}))
	return files, folders
}

// Whatever is written is for its owner alone, whatever the umask is; with --mode it has that, whatever the umask is.
func TestWhatIsWrittenIsForItsOwner(t *testing.T) {
	for name, args := range writers(t) {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				umask, mode  string
				file, folder fs.FileMode
			}{{"000", "", 0o600, 0o700}, {"022", "", 0o600, 0o700}, {"077", "0640", 0o640, 0o750}, {"022", "666", 0o666, 0o777}} {
				dir := t.TempDir()
				out := filepath.Join(dir, "out")
				if strings.Contains(name, "replaces") {
					realtest.Must(t, os.WriteFile(out, []byte("old"), 0o644))
				}
				all, rest := args[:1:1], args[1:]
				if args[0] == "symbols" {
					all, rest = args[:2:2], args[2:]
				}
				if test.mode != "" {
					all = append(all, "--mode", test.mode)
				}
				for _, a := range rest {
					all = append(all, strings.Replace(a, "OUT", out, 1))
				}
				runWithUmask(t, test.umask, all)
				files, folders := modes(t, dir)
				if len(files) == 0 {
					t.Fatalf("%q has written nothing", all)
				}
				for got, path := range files {
					if got != test.file {
						t.Errorf("umask %s, --mode %q: %s has %v, want %v", test.umask, test.mode, path, got, test.file)
					}
				}
				for got, path := range folders {
					if got != test.folder {
						t.Errorf("umask %s, --mode %q: the folder %s has %v, want %v", test.umask, test.mode, path, got, test.folder)
					}
				}
			}
		})
	}
}

func TestModesThatNobodyMeans(t *testing.T) {
	for _, mode := range []string{"", "8", "0400", "0640x", "-1", "04600", "0700", "0755", "1666", "99999999999", "rw-r-----"} {
		a := callreel("", "export", "x.reel", "--format", "folded", "-o", "-", "--mode", mode)
		if a.code != exitUsage || !strings.Contains(a.stderr, "mode") {
			t.Errorf("--mode %q: code %d, %q", mode, a.code, a.stderr)
		}
	}
}

// What another user has planted where root writes leads nowhere: neither by the name itself, nor by the folder, nor by any other name.
func TestRootWritesIntoAnotherUsersFolder(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_ROLE") != "" {
		plant(os.Getenv("CALLREEL_TEST_FOLDER"), os.Getenv("CALLREEL_TEST_VICTIM"))
	}
	realtest.Need(t, realtest.Superuser)
	for name, args := range writers(t) {
		for _, force := range []bool{false, true} {
			if strings.Contains(name, "replaces") || force && (args[0] == "record" && name != "record" && name != "dumps") {
				continue
			}
			t.Run(fmt.Sprintf("%s, force %v", name, force), func(t *testing.T) {
				home, victim := realtest.StrangersFolder(t), filepath.Join(realtest.SharedFolder(t), "victim")
				realtest.Must(t, os.WriteFile(victim, []byte("root's"), 0o600))
				cmd := realtest.AsStranger(t, "TestRootWritesIntoAnotherUsersFolder", "plant")
				cmd.Env = append(cmd.Env, "CALLREEL_TEST_FOLDER="+home, "CALLREEL_TEST_VICTIM="+victim)
				realtest.Must(t, cmd.Start())
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				for _, in := range []string{"out", "folder/victim", "out", "out"} {
					all, rest := args[:1:1], args[1:]
					if args[0] == "symbols" {
						all, rest = args[:2:2], args[2:]
					}
					if force {
						all = append(all, "--force")
					}
					for _, a := range rest {
						all = append(all, strings.Replace(a, "OUT", filepath.Join(home, in), 1))
					}
					_ = realtest.Callreel(t, all...) // it may fail, or not
				}
				if data, err := os.ReadFile(victim); err != nil || string(data) != "root's" {
					t.Errorf("the victim has %q, %v", data, err)
				}
				if fi, err := os.Lstat(victim); err != nil || fi.Mode() != 0o600 {
					t.Errorf("the victim is %v, %v", fi.Mode(), err)
				}
				if entries, err := os.ReadDir(filepath.Dir(victim)); err != nil || len(entries) != 1 {
					t.Errorf("beside the victim there is %v, %v", entries, err)
				}
			})
		}
	}
}

// plant makes, as another user, all names that a file could get into links, and everything that appears, until it is ended.
func plant(home, victim string) {
	folder := filepath.Dir(victim)
	for {
		names := []string{"out", "out.reel", "out.json", "out-001.json", "out.folded", ".out.part", ".slow-0001.reel.part", "slow-0001.reel"}
		for _, dir := range []string{home, filepath.Join(home, "out")} {
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				names = append(names, e.Name())
			}
			for _, name := range names {
				at := filepath.Join(dir, name)
				switch {
				case time.Now().UnixNano()%7 == 0:
					_ = os.Symlink(folder, at)
				case time.Now().UnixNano()%7 == 1:
					_ = os.Mkdir(at, 0o777)
				default:
					_ = os.Symlink(victim, at)
				}
				_ = syscall.Rename(at, at+".gone")
				_ = os.RemoveAll(at + ".gone")
			}
		}
		_ = os.Symlink(folder, filepath.Join(home, "folder"))
	}
}

// Names that were guessed before root begins lead nowhere, though nobody races.
func TestPlantedNames(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.Superuser)
	for _, test := range []struct {
		name, at string
		args     []string
		want     int
		made     string // what is there afterwards, of root's
	}{
		{"a reel", "out", []string{"record", "-o", "out", "--", "true"}, exitUsage, ""},
		{"a reel with force", "out", []string{"record", "--force", "-o", "out", "--", "true"}, exitDone, "out"},
		{"a summary", "sum", []string{"record", "--summary", "sum", "-o", "out", "--", "true"}, exitDone, "sum"},
		{"a dump", "dumps/slow-0001.reel", []string{"record", "--when", "malloc > 1h", "-o", "dumps", "--", "true"}, exitDone, "dumps/slow-0002.reel"},
		{"a dump with force", "dumps/slow-0001.reel", []string{"record", "--force", "--when", "malloc > 1h", "-o", "dumps", "--", "true"}, exitDone, "dumps/slow-0001.reel"},
		{"a dump that isn't whole", "dumps/.slow-0001.reel.part", []string{"record", "--when", "malloc > 1h", "-o", "dumps", "--", "true"}, exitDone, "dumps/slow-0001.reel"},
		{"the folder", "dumps", []string{"record", "--when", "malloc > 1h", "-o", "dumps", "--", "true"}, exitNotPermitted, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			home, victim := realtest.StrangersFolder(t), filepath.Join(realtest.SharedFolder(t), "victim")
			realtest.Must(t, os.WriteFile(victim, []byte("root's"), 0o600))
			to := victim
			if test.at == "dumps" {
				to = filepath.Dir(victim)
			}
			if in := filepath.Dir(test.at); in != "." {
				realtest.Must(t, os.Mkdir(filepath.Join(home, in), 0o755))
				realtest.Must(t, os.Chown(filepath.Join(home, in), realtest.Stranger, realtest.Stranger))
			}
			realtest.Must(t, os.Symlink(to, filepath.Join(home, test.at)))
			realtest.Must(t, os.Lchown(filepath.Join(home, test.at), realtest.Stranger, realtest.Stranger))
			args := append([]string{}, test.args...)
			for i := range args {
				if i > 0 && (args[i-1] == "-o" || args[i-1] == "--summary") {
					args[i] = filepath.Join(home, args[i])
				}
			}
			a := realtest.Callreel(t, args...)
			if a.Code != test.want {
				t.Errorf("code %d, want %d: %s", a.Code, test.want, a.Stderr)
			}
			if data, err := os.ReadFile(victim); err != nil || string(data) != "root's" {
				t.Errorf("the victim has %q, %v", data, err)
			}
			if entries, err := os.ReadDir(filepath.Dir(victim)); err != nil || len(entries) != 1 {
				t.Errorf("beside the victim there is %v, %v", entries, err)
			}
			if test.made != "" {
				fi, err := os.Lstat(filepath.Join(home, test.made))
				if err != nil || fi.Mode() != 0o600 || fi.Size() == 0 || fi.Sys().(*syscall.Stat_t).Uid != 0 {
					t.Errorf("%s: %v %v", test.made, fi, err)
				}
			}
		})
	}
}
