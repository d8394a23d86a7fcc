package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// A Program is a real program with work to do.
type Program struct {
	Name   string
	Images []string // globs, as callreel's -m takes them, of the images that the program is
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
		{"redis", []string{"redis-*"}, need("redis-server"), startRedis},
		{"python3", []string{"python3*"}, [][]string{{"/usr/bin/python3.11", "/usr/bin/python3", "/usr/local/bin/python3"}}, startPython},
		{"postgres", []string{"postgres"}, [][]string{{"/usr/lib/postgresql/15/bin/postgres", "postgres"}, {"psql"}}, startPostgres},
		{"git", []string{"git"}, need("git"), startGit},
		{"gdb", []string{"gdb"}, need("gdb", "g++"), startGDB},
		{"bash", []string{"bash"}, need("bash"), script("work.sh")},
		{"node", []string{"node*"}, need("node"), script("work.js")},
		{"OpenJDK", []string{"libjvm.so"}, need("java", "javac"), startJava},
		{"perl", []string{"perl*"}, [][]string{{"/usr/bin/perl", "perl"}}, script("work.pl")},
		{"nginx", []string{"nginx"}, [][]string{{"nginx", "/usr/sbin/nginx"}}, startNginx},
		{"Rust", []string{"rust"}, need("rustc"), compiled("rust", "work.rs", "-O", "-o")},
		{"C++ that throws", []string{"throw", "libstdc++.so.6*", "libgcc_s.so.1"}, need("g++"), compiled("throw", "throw.cc", "-O2", "-g", "-std=c++17", "-pthread", "-o")},
		{"static musl", []string{"musl"}, need("musl-gcc"), compiled("musl", "work.c", "-O2", "-static", "-pthread", "-lm", "-o")},
		{"Mono", []string{"mono*"}, [][]string{{"mono"}, {"mcs", "mono-mcs"}}, startMono},
	}
}

// need is for programs each of which has one name.
func need(names ...string) (needs [][]string) {
	for _, name := range names {
		needs = append(needs, []string{name})
	}
	return needs
}

// find returns the paths of what the program needs, or an error that names what is missing.
func (p *Program) find() ([]string, error) {
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

// Missing returns an error that names what of the program this machine lacks, or nil.
func (p *Program) Missing() error {
	_, err := p.find()
	return err
}

// Start starts the program, which makes files below dir only. ctx ends it by force.
func (p *Program) Start(ctx context.Context, dir string) (*Instance, error) {
	found, err := p.find()
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
