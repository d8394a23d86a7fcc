package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// pageFlags say how a page is served.
type pageFlags struct {
	noOpen  bool
	address string
	port    uint16

	debugDirs []string
	name      func(*reel.File) // see viewer.Options
}

func newView() *cobra.Command {
	var f pageFlags
	c := &cobra.Command{
		Use:   "view FILE [FILE2]",
		Short: "Show a reel in the browser: timeline, search, flame graph, functions",
		Long: `View serves a page that shows the reel, prints its address to stdout, and opens it in the browser. The page asks only
for what the screen can show, so a reel may be of any size. It is served until Ctrl-C, on this machine only, to whoever
knows the address. With two reels the page also says what became slower from the first to the second, as callreel diff
does.

` + reelNaming + `
What must be made or fetched for that is, before the page is there. The page says where a name came from.

A reel that is still being written is followed to its end. A dump opens at the call that it was made for.

To look at a reel on another machine, forward the port to the same port here: ssh -L PORT:127.0.0.1:PORT HOST.`,
		Example: `  callreel view slow.reel
  callreel view --no-open --port 8099 slow.reel
  callreel view before.reel after.reel`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError("callreel view: give one FILE, or two; see callreel view --help")
			}
			return f.check("callreel view")
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := untilSignal(c.Context())
			defer stop()
			status := newStatus(c.ErrOrStderr())
			names, err := newReelNames(ctx, c, status, f.debugDirs)
			if err != nil {
				return err
			}
			defer names.Close() // only read from
			f.name = func(file *reel.File) {
				names.Prepare(file)
				if toldWhereToLook(f.debugDirs) {
					tellNotFound(status, names)
				}
				file.NameBy(names)
			}
			server, err := f.start(args, false)
			if err != nil {
				return err
			}
			for _, d := range server.Damage() {
				status.notice("%s", d)
			}
			f.warn(status, server)
			if _, err := fmt.Fprintln(c.OutOrStdout(), server.URL()); err != nil {
				return errors.Join(err, server.Close())
			}
			forget := f.browse(status, server)
			defer forget()
			return errors.Join(server.Serve(ctx), server.Close())
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.noOpen, "no-open", false, "don't open the browser")
	fl.StringVar(&f.address, "address", "127.0.0.1", "listen at this IP `ADDRESS`; one that isn't loopback lets others in")
	fl.Uint16Var(&f.port, "port", 0, "listen at this `PORT` (default a free one)")
	addDebugDirs(c.Flags(), &f.debugDirs)
	return c
}

func (f *pageFlags) check(verb string) error {
	if net.ParseIP(f.address) == nil {
		return usageError("%s: --address %s: is not an IP address", verb, f.address)
	}
	return nil
}

// start starts a server of reels; recording says that the first is being written by ourselves.
func (f *pageFlags) start(paths []string, recording bool) (*viewer.Server, error) {
	return viewer.New(viewer.Options{
		Paths: paths, Recording: recording, Address: f.address, Port: int(f.port), Version: versionText(), Store: openDefaultStore(),
		DebugDirs: f.debugDirs, Name: f.name, Explain: explainCall, Control: pageControl{},
	})
}

// warn says who can reach the page, if others can.
func (f *pageFlags) warn(status *status, server *viewer.Server) {
	if server.Open() {
		status.notice("the page is served at %s: who can reach that address, and knows the token, reads the reel; nothing is encrypted", f.address)
	}
}

// browse opens the browser; forget is to be called at the end.
func (f *pageFlags) browse(status *status, server *viewer.Server) (forget func()) {
	if f.noOpen {
		return func() {}
	}
	forget, err := openBrowser(server.URL())
	if err != nil {
		status.notice("the browser was not opened: %v", err)
	}
	return forget
}
