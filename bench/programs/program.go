package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A Program is a real program with work to do.
type Program struct {
	Name   string
	Images []string // globs, as callreel's -m takes them, of the images that the program is
	// Markers are globs, as callreel's --markers takes them, of those that it has.
	Markers []string
	Timed   bool // it can't be recorded with a --clock that leaves times out
	// made is the name of a file that is compiled once, and needs nothing when it is there; "" for none.
	made string
	// needs are commands on the PATH, or files, of each of which the first that is there is taken.
	needs [][]string
	start func(context.Context, *place) (*Instance, error)
}

// place is where an instance is made: the programs that it needs, and a folder of its own.
type place struct {
	dir   string
	found []string // as needs
}

// All returns the programs, whether they are on this machine or not.
func All() []Program {
	return []Program{
		{Name: "redis", Images: []string{"redis-*"}, needs: need("redis-server"), start: startRedis},
		{Name: "python3", Images: []string{"python3*"}, Markers: []string{"python:*"}, needs: [][]string{{"/usr/bin/python3.11", "/usr/bin/python3", "/usr/local/bin/python3"}}, start: startPython},
		{Name: "postgres", Images: []string{"postgres"}, Markers: []string{"postgresql:*"}, needs: [][]string{{"/usr/lib/postgresql/15/bin/postgres", "postgres"}, {"psql"}}, start: startPostgres},
		{Name: "git", Images: []string{"git"}, needs: need("git"), start: startGit},
		{Name: "gdb", Images: []string{"gdb"}, needs: need("gdb", "g++"), start: startGDB},
		{Name: "bash", Images: []string{"bash"}, needs: need("bash"), start: script("work.sh")},
		{Name: "node", Images: []string{"node*"}, needs: need("node"), start: script("work.js")},
		{Name: "OpenJDK", Images: []string{"libjvm.so"}, needs: need("java", "javac"), start: startJava},
		{Name: "perl", Images: []string{"perl*"}, needs: [][]string{{"/usr/bin/perl", "perl"}}, start: script("work.pl")},
		{Name: "nginx", Images: []string{"nginx"}, needs: [][]string{{"nginx", "/usr/sbin/nginx"}}, start: startNginx},
		{Name: "memcached", Images: []string{"memcached"}, needs: need("memcached"), start: startMemcached},
		{Name: "Rust", Images: []string{"rust"}, made: "rust", needs: need("rustc"), start: compiled("rust", "work.rs", "-O", "-o")},
		{Name: "Go", Images: []string{"go-work"}, Timed: true, made: "go-work", needs: need("go"), start: startGo},
		{Name: "C++ that throws", Images: []string{"throw", "libstdc++.so.6*", "libgcc_s.so.1"}, needs: need("g++"), start: compiled("throw", "throw.cc", "-O2", "-g", "-std=c++17", "-pthread", "-o")},
		{Name: "static musl", Images: []string{"musl"}, needs: need("musl-gcc"), start: compiled("musl", "work.c", "-O2", "-static", "-pthread", "-lm", "-o")},
		{Name: "ruby", Images: []string{"ruby*", "libruby*"}, Markers: []string{"ruby:*"}, needs: need("ruby"), start: script("work.rb")},
		{Name: "C with markers", Images: []string{"marks"}, Markers: []string{"callreel:*"}, needs: need("gcc"), start: startMarks},
		{Name: "Mono", Images: []string{"mono*"}, needs: [][]string{{"mono"}, {"mcs", "mono-mcs"}}, start: startMono},
	}
}

// need is for programs each of which has one name.
func need(names ...string) (needs [][]string) {
	for _, name := range names {
		needs = append(needs, []string{name})
	}
	return needs
}

// find returns the paths of what the program needs besides what is in dir, or an error that names what is missing.
func (p *Program) find(dir string) ([]string, error) {
	if p.made != "" && dir != "" {
		if _, err := os.Stat(filepath.Join(dir, p.made)); err == nil {
			return make([]string, len(p.needs)), nil
		}
	}
	var found []string
	for _, names := range p.needs {
		path := ""
		for _, name := range names {
			if there, err := exec.LookPath(name); err == nil {
				path = there
				break
			}
		}
		if path == "" {
			return nil, fmt.Errorf("%s is missing", names[0])
		}
		found = append(found, path)
	}
	return found, nil
}

// Missing returns an error that names what of the program this machine lacks, or nil. In dir, the one for Start, may be some that were
// compiled before; "" for none.
func (p *Program) Missing(dir string) error {
	_, err := p.find(dir)
	return err
}

// Start starts the program, which makes files below dir only. ctx ends it by force.
func (p *Program) Start(ctx context.Context, dir string) (*Instance, error) {
	found, err := p.find(dir)
	if err != nil {
		return nil, err
	}
	own, err := os.MkdirTemp(dir, "program-")
	if err != nil {
		return nil, err
	}
	i, err := p.start(ctx, &place{own, found})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.Name, err), os.RemoveAll(own))
	}
	i.name, i.dir = p.Name, own
	return i, nil
}
