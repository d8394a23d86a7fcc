package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/imagetree"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/server/push"
)

// pushFlags are the flags of symbols push.
type pushFlags struct {
	to, tokenFile string
	sources       bool
	jobs          int
	memory        memoryLimit
	json          bool
}

func newSymbolsPush() *cobra.Command {
	f := &pushFlags{}
	c := &cobra.Command{
		Use:   "push DIR --to URL [--token-file FILE] [--sources]",
		Short: "Send the symbols of every image below a folder to a server",
		Long: `Push sends every program, library and debug file below DIR that has an ID to a server of callreel symbols serve, as a CI job
does after a build. What the server has already isn't sent. The token is the first in --token-file, or that of
CALLREEL_PUSH_TOKEN or CALLREEL_TOKEN, or the password in the URL.

With --sources the source files that the debug information names are sent, too, where they are on this machine.

If one file fails, the others are sent all the same, and the exit code is 1.`,
		Example: `  callreel symbols push ./build --to https://symbols.example.org --token-file push-token
  CALLREEL_PUSH_TOKEN=… callreel symbols push ./build --to http://127.0.0.1:8002 --sources`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || f.to == "" {
				return usageError("callreel symbols push: give one DIR and --to URL; see callreel symbols push --help")
			}
			if f.jobs < 1 {
				return usageError("callreel symbols push: --jobs %d: want 1 at least", f.jobs)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.to, "to", "", "the server's `URL`")
	fl.StringVar(&f.tokenFile, "token-file", "", "the token is the first line of this `FILE`")
	fl.BoolVar(&f.sources, "sources", false, "send source files, too")
	fl.IntVar(&f.jobs, "jobs", 4, "how many files are sent at once")
	f.memory.add(fl)
	fl.BoolVar(&f.json, "json", false, "write what was sent, as JSON")
	return c
}

func (f *pushFlags) run(c *cobra.Command, dir string) error {
	ctx, stop := untilSignal(c.Context())
	defer stop()
	token, err := f.token()
	if err != nil {
		return err
	}
	client, err := push.New(f.to, token)
	if err != nil {
		return usageError("callreel symbols push: --to: %w", err)
	}
	status := newStatus(c.ErrOrStderr())
	bar := newProgress(status)
	bar.show("looking for images in "+dir, 0, 0, nil)
	tree, err := imagetree.Read(ctx, dir)
	if err != nil {
		return err
	}
	p := &pushing{flags: f, client: client, status: status, bar: bar, total: len(tree.Groups)}
	for _, fail := range tree.Failures {
		p.failed(fail.Path, fail.Err)
	}
	p.all(ctx, tree.Groups)
	bar.clear()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n := len(tree.WithoutID); n > 0 {
		status.notice("%s without an ID left out, such as %s", things(uint64(n), "image"), tree.WithoutID[0])
	}
	if f.json {
		err = writeJSON(c.OutOrStdout(), &p.done)
	} else {
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s sent, %d there already, %d failed\n", things(uint64(p.done.Stored), "file"), p.done.There, p.done.Failed)
	}
	if err == nil && p.done.Failed > 0 {
		return &exitError{code: exitFailed}
	}
	return err
}

// token finds the token.
func (f *pushFlags) token() (string, error) {
	for _, variable := range []string{pushTokenVariable, tokenVariable} {
		list, err := readTokens(f.tokenFile, variable)
		if err != nil || len(list) > 0 {
			return append(list, "")[0], err
		}
	}
	return "", nil
}

// pushing sends the images of a tree.
type pushing struct {
	flags  *pushFlags
	client *push.Client
	total  int

	mu     sync.Mutex
	status *status
	bar    *progress
	begun  int
	done   pushedFiles
}

// pushedFiles is what symbols push --json says; the keys are promised.
type pushedFiles struct {
	Stored int `json:"stored"`
	There  int `json:"there"`
	Failed int `json:"failed"`
}

func (p *pushing) failed(path string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.Failed++
	p.status.notice("%s: %v", path, err)
}

// all sends the files of all groups.
func (p *pushing) all(ctx context.Context, groups []imagetree.Group) {
	var wg sync.WaitGroup
	next := make(chan *imagetree.Group)
	for range p.flags.jobs {
		wg.Go(func() {
			for g := range next {
				p.group(ctx, g)
			}
		})
	}
	for k := range groups {
		if ctx.Err() != nil {
			break
		}
		next <- &groups[k]
	}
	close(next)
	wg.Wait()
}

// group sends the files of one ID.
func (p *pushing) group(ctx context.Context, g *imagetree.Group) {
	p.mu.Lock()
	p.begun++
	p.bar.items(base(g.Image.Path), int64(p.begun), int64(p.total))
	p.mu.Unlock()
	files := []*imagetree.File{&g.Image}
	if g.Debug != nil {
		files = append(files, g.Debug)
	}
	for _, file := range files {
		if ctx.Err() != nil {
			return
		}
		p.file(ctx, g.ID, file)
	}
	if p.flags.sources && ctx.Err() == nil {
		p.sourcesOf(ctx, g.ID, files[len(files)-1])
	}
}

// file sends one image.
func (p *pushing) file(ctx context.Context, id string, file *imagetree.File) {
	im, err := file.Open(p.flags.memory.opener())
	if err == nil {
		defer im.Close()
		p.sent(ctx, file.Path, func() (string, error) {
			a, err := p.client.File(ctx, id, base(file.Path), imageContent{im})
			if err != nil {
				return "", err
			}
			return a.State, nil
		})
		return
	}
	p.failed(file.Path, err)
}

// sent counts what became of a file.
func (p *pushing) sent(ctx context.Context, path string, send func() (state string, err error)) {
	state, err := send()
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil:
		p.failed(path, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == "there" {
		p.done.There++
	} else {
		p.done.Stored++
	}
}

// sourcesOf sends the source files of an image that are here.
func (p *pushing) sourcesOf(ctx context.Context, id string, file *imagetree.File) {
	im, err := file.Open(p.flags.memory.opener())
	if err != nil {
		return // it was told
	}
	defer im.Close()
	m, _, err := symbols.BuildMap(ctx, im, symbols.BuildOptions{})
	if err != nil {
		p.failed(file.Path, err)
		return
	}
	defer m.Close()
	m.Files(func(path string) bool {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || path[0] != '/' {
			return ctx.Err() == nil
		}
		p.sent(ctx, path, func() (string, error) {
			a, err := p.client.Source(ctx, id, path, fileContent(path))
			if err != nil {
				return "", err
			}
			return a.State, nil
		})
		return ctx.Err() == nil
	})
}

// imageContent is a push.Content of an image: of a fat file, its part.
type imageContent struct{ im *object.Image }

// Open implements push.Content.
func (c imageContent) Open() (io.ReadCloser, int64, error) {
	size := int64(c.im.Size())
	return io.NopCloser(io.NewSectionReader(c.im, 0, size)), size, nil
}

// fileContent is a push.Content of a file.
type fileContent string

// Open implements push.Content.
func (c fileContent) Open() (io.ReadCloser, int64, error) {
	f, err := os.Open(string(c))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
