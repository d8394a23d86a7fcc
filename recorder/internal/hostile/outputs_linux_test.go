package hostile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestSocketOfTheRecorderIsTaken(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(target(t, "hostile_squatter"))
	pid := strconv.Itoa(p.Pid())
	reel := filepath.Join(t.TempDir(), "x.reel")
	r := start(t, "record", "-p", pid, "-f", "hostile_*", "-o", reel)
	if !r.on(t, reel) {
		r.wait(t)
		t.Fatal("not recorded")
	}
	if set := callreel(t, "set", "-p", pid, "-x", "hostile_leaf"); set.Code != 0 {
		t.Errorf("set: exit code %d: %s", set.Code, set.Stderr)
	}
	r.interrupt()
	r.wait(t)
	if n := p.Finish()["came"]; n != 0 {
		t.Errorf("root has connected to a socket of the target's %d times", n)
	}
}

// shut fails the test unless all files in a folder are their owner's alone.
func shut(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == folder || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others than its owner can use it", strings.TrimPrefix(path, folder), info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOutputsAreTheirOwnersAlone(t *testing.T) {
	u := realtest.NewUser(t, 0)
	program := target(t, "hostile_victim")
	p := u.Start(program)
	pid := strconv.Itoa(p.Pid())
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	t.Setenv("XDG_CACHE_HOME", at("cache"))
	for _, args := range [][]string{
		{"record", "-p", pid, "-f", "hostile_*", "-d", "50ms", "-o", at("x.reel"), "--summary", at("summary")},
		{"record", "-p", pid, "-f", "hostile_*", "-d", "300ms", "--when", "hostile_leaf", "--max", "1", "-o", at("dumps")},
		{"export", at("x.reel"), "--format", "perfetto", "-o", at("x.pftrace")},
		{"export", at("x.reel"), "--format", "chrome", "--split", "100K", "-o", at("x.json")},
		{"sample", "-p", pid, "-d", "100ms", "-o", at("x.pb.gz")},
		{"stacks", "-p", pid},
		{"symbols", "build", "-o", at("x.symmap"), program},
	} {
		if r := callreel(t, args...); r.Code != 0 {
			t.Errorf("%q: exit code %d: %s", args, r.Code, r.Stderr)
		}
	}
	shut(t, folder)
	p.Finish()
}

// Everything that root writes into a folder of the user's has a link of the user's in its way.
func TestLinksLieWhereOutputsGo(t *testing.T) {
	u := realtest.NewUser(t, 0)
	s := newSecret(t, u)
	p := u.Start(target(t, "hostile_victim"))
	pid := strconv.Itoa(p.Pid())
	at := func(name string) string { return filepath.Join(u.Folder, name) }
	plant := func(names ...string) {
		for _, name := range names {
			path := at(name)
			err := os.MkdirAll(filepath.Dir(path), 0o777)
			if err == nil {
				err = os.Symlink(s.path, path)
			}
			if err == nil && filepath.Dir(path) != u.Folder {
				err = os.Chown(filepath.Dir(path), int(u.ID), int(u.ID))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	// A reel's name, and the names that dumps have, and have while they are made.
	names := []string{"x.reel", "x.pftrace", "x.pb.gz", "x.symmap", "summary"}
	for i := 1; i <= 9; i++ {
		for _, form := range []string{"dumps/slow-%04d.reel", "dumps/slow-%04d.reel.part", "dumps/.slow-%04d.reel.part", "dumps/.slow-%04d.part", "dumps/slow-%04d.part"} {
			names = append(names, fmt.Sprintf(form, i))
		}
	}
	plant(names...)
	good := filepath.Join(t.TempDir(), "good.reel")
	for _, args := range [][]string{
		{"record", "-p", pid, "-f", "hostile_*", "-d", "50ms", "-o", good},
		{"record", "-p", pid, "-f", "hostile_*", "-d", "50ms", "-o", at("x.reel")},
		{"record", "-p", pid, "-f", "hostile_*", "-d", "50ms", "-o", at("x.reel"), "--force"},
		{"record", "-p", pid, "-f", "hostile_*", "-d", "50ms", "-o", filepath.Join(t.TempDir(), "y.reel"), "--summary", at("summary")},
		{"record", "-p", pid, "-f", "hostile_*", "-d", "300ms", "--when", "hostile_leaf", "--max", "3", "-o", at("dumps")},
		{"export", good, "--format", "perfetto", "-o", at("x.pftrace")},
		{"export", good, "--format", "perfetto", "-o", at("x.pftrace"), "--force"},
		{"sample", "-p", pid, "-d", "100ms", "-o", at("x.pb.gz")},
		{"sample", "-p", pid, "-d", "100ms", "-o", at("x.pb.gz"), "--force"},
		{"symbols", "build", "-o", at("x.symmap"), target(t, "hostile_victim")},
		{"symbols", "build", "-f", "-o", at("x.symmap"), target(t, "hostile_victim")},
	} {
		r := callreel(t, args...)
		if err := s.changed(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, r.Stderr)
		}
		t.Logf("%s: code %d: %.200s", args[0], r.Code, r.Stderr)
	}
	p.Finish()
}
