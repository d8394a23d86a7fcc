package viewer

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

//go:embed page/dist
var page embed.FS

// Options say what a [Server] serves.
type Options struct {
	// Paths are the reels: one, or two that are compared with each other.
	Paths []string
	// Recording says that the first reel is being written by this process: it is followed until [Server.Ended] is called.
	Recording bool
	// Address is where to listen, an IP address; "" is 127.0.0.1. On any but a loopback address others can reach the server.
	Address string
	// Port is the port; 0 lets the system choose.
	Port int
	// Version is the program's, for the page.
	Version string
	// Store keeps the symbol maps that tell where functions are in source files; nil keeps them in memory.
	Store *symbols.Store
	// DebugDirs are searched for debug files, see symbols.Finder.
	DebugDirs []string
	// Explain, if set, says why a call was slow.
	Explain func(context.Context, *reel.File, CallID) (*Explanation, error)
	// Control, if set, lets the page pause the recording that is written by this process.
	Control Control
	// Name, if set, is called with each reel before it is served, and may name its functions.
	Name func(*reel.File)
}

// Server serves reels until it is closed.
type Server struct {
	opt      Options
	token    string
	hosts    hosts
	listener net.Listener
	http     *http.Server
	reels    []*recording
	events   *broadcast
	turn     chan struct{} // held by the analysis that runs: each takes all processors
	page     fs.FS

	ctx    context.Context // ends with the server
	cancel context.CancelFunc
	using  sync.RWMutex // held for reading by each request, for writing when the reels are closed
}

// tokenBytes makes tokens of 192 bits.
const tokenBytes = 24

// Limits of requests. A page asks for little and reads at once; what writes for longer extends its deadline with each write.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 5 * time.Minute
	maxHeader     = 64 << 10 // bytes, URL included
)

// New opens the reels and starts to listen. What is slow about opening (an index for a reel that has none) goes on in the
// background and is shown by the page. The server must be closed.
func New(opt Options) (*Server, error) {
	dist, err := fs.Sub(page, "page/dist")
	if err != nil {
		return nil, fmt.Errorf("viewer: %w", err)
	}
	token := make([]byte, tokenBytes)
	if _, err := rand.Read(token); err != nil {
		return nil, fmt.Errorf("viewer: making a token: %w", err)
	}
	s := &Server{opt: opt, token: hex.EncodeToString(token), events: newBroadcast(), turn: make(chan struct{}, 1), page: dist}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i, path := range opt.Paths {
		r, err := openRecording(s, i, path, opt.Recording && i == 0)
		if err != nil {
			return nil, errors.Join(err, s.closeReels())
		}
		s.reels = append(s.reels, r)
	}
	if s.opt.Address == "" {
		s.opt.Address = "127.0.0.1"
	}
	s.listener, err = net.Listen("tcp", net.JoinHostPort(s.opt.Address, strconv.Itoa(opt.Port)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("viewer: %w", err), s.closeReels())
	}
	s.hosts = newHosts(s.opt.Address, s.listener.Addr())
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ErrorLog:    nobody, // what a browser does wrong is not for the terminal
	}
	for _, r := range s.reels {
		r.start()
	}
	return s, nil
}

// URL is where the page is.
func (s *Server) URL() string {
	return "http://" + s.hosts.shown + "/" + s.token + "/"
}

// Open says whether others than this machine's users can reach the server.
func (s *Server) Open() bool { return s.hosts.open }

// Damage lists what could not be read of the reels so far.
func (s *Server) Damage() []string {
	var list []string
	for _, r := range s.reels {
		for _, d := range r.File().Damage() {
			list = append(list, fmt.Sprintf("%s is damaged: %s", r.path, d))
		}
	}
	return list
}

// Serve answers requests until ctx ends; then it returns nil.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.cancel() // ends the streams, and what is being computed
		const patience = time.Second
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if s.http.Shutdown(end) != nil {
			_ = s.http.Close() // answers that nobody reads are given up
		}
	})
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("viewer: %w", err)
	}
	return nil
}

// Ended says that the recording of the first reel has ended: the page shows it to its end, and stops following.
func (s *Server) Ended() { s.reels[0].ended() }

// Close stops everything and closes the reels.
func (s *Server) Close() error {
	s.cancel()
	err := s.http.Close()
	_ = s.listener.Close() // closed already, where it was served
	return errors.Join(err, s.closeReels())
}

func (s *Server) closeReels() error {
	s.cancel()
	s.using.Lock()
	defer s.using.Unlock()
	var errs []error
	for _, r := range s.reels {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}
