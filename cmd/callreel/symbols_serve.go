package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/internal/ownfolder"
	"github.com/callreel/callreel/symbols/server"
	"github.com/callreel/callreel/symbols/server/storage"
)

// serveFlags are the flags of symbols serve.
type serveFlags struct {
	listen, tokenFile, pushTokenFile, public, cacheDir, logFormat, logLevel, certificate, key string
	debuginfod                                                                                bool
	cacheSize, mapMemory, maxBody, maxUpload, maxSource, quota                                size
	memory                                                                                    memoryLimit
	builds, maxConnections                                                                    int
	idle, request, build, missing, grace                                                      time.Duration
}

func newSymbolsServe() *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve STORE [--listen ADDRESS] [--public NAMES] [--debuginfod]",
		Short: "Serve symbols: debug files as debuginfod does, and names for addresses",
		Long: `Serve answers by HTTP from STORE: a folder, such as symbols build fills, or s3://BUCKET/PREFIX, whose endpoint, region and
keys are those of AWS' variables (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY). The address
served is printed on stdout. Several servers may serve one store.

  GET  /buildid/ID/debuginfo, executable, section/NAME, source/PATH    as debuginfod, for gdb, elfutils, perf and others
  POST /symbolize       takes and gives what symbolize --json does; with Content-Type: application/x-ndjson one capture a
                        line; bodies may be in gzip or zstd
  GET  /symmap/ID       the symbol map, which is made when it is first needed
  PUT  /buildid/ID      what symbols push sends
  GET  /healthz, /readyz, /metrics

Nothing is served without a token, except what --public names: debuginfod, source, symbolize, symmap, metrics, health, or
all of these with "all". Tokens come from --token-file or CALLREEL_TOKEN, those that may also push from --push-token-file
or CALLREEL_PUSH_TOKEN. If none are given, one is made for this run and written to stderr. A client gives its token as
"Authorization: Bearer TOKEN", or as the password in the address: http://any:TOKEN@HOST.

With --debuginfod the servers of DEBUGINFOD_URLS are asked for what STORE lacks, and their files are kept in it.`,
		Example: `  callreel symbols serve ./store --public debuginfod,symbolize
  callreel symbols serve s3://symbols/prod --listen :8002 --token-file tokens --push-token-file push-tokens`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("callreel symbols serve: give one STORE: a folder or s3://BUCKET/PREFIX; see callreel symbols serve --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8002", "serve at this `ADDRESS`, HOST:PORT; port 0 is a free one")
	fl.BoolVar(&f.debuginfod, "debuginfod", false, "ask the servers of DEBUGINFOD_URLS for what the store lacks")
	fl.StringVar(&f.public, "public", server.ServiceHealth, "what needs no token: `NAMES` with commas between, or all")
	fl.StringVar(&f.tokenFile, "token-file", "", "tokens that may read, one a line of this `FILE`")
	fl.StringVar(&f.pushTokenFile, "push-token-file", "", "tokens that may push, and read, one a line of this `FILE`")
	fl.StringVar(&f.certificate, "tls-cert", "", "serve by https with the certificates in this `FILE`")
	fl.StringVar(&f.key, "tls-key", "", "the key of --tls-cert, in this `FILE`")
	fl.StringVar(&f.cacheDir, "cache-dir", "", "keep maps out of a bucket in this `DIR` (default in your user's cache)")
	fl.Var(&f.cacheSize, "cache-size", "how much --cache-dir may hold (default 10G)")
	fl.Var(&f.mapMemory, "map-memory", "how much open maps and the names kept of them may take (default 1G)")
	fl.Var(&f.maxBody, "max-body", "the largest POST, or line of one, inflated (default 64M)")
	fl.Var(&f.maxUpload, "max-upload", "the largest file that may be pushed (default 4G)")
	fl.Var(&f.maxSource, "max-source", "the largest source file that may be pushed (default 16M)")
	fl.Var(&f.quota, "quota", "refuse pushes when the store holds so much (default no limit)")
	f.memory.add(fl)
	fl.IntVar(&f.builds, "builds", 0, "how many maps are made at once (default half of the CPUs)")
	fl.IntVar(&f.maxConnections, "max-connections", server.DefaultMaxConnections, "how many connections are served at once; more wait")
	fl.DurationVar(&f.idle, "idle-timeout", server.DefaultIdleTimeout, "how long a client may send or take nothing")
	fl.DurationVar(&f.request, "request-timeout", server.DefaultRequestTimeout, "how long one POST, or line of one, may take")
	fl.DurationVar(&f.build, "build-timeout", server.DefaultBuildTimeout, "how long making one map may take")
	fl.DurationVar(&f.missing, "missing-for", server.DefaultMissingFor, "how long an ID without symbols is remembered at first; later up to 64 times as long")
	fl.DurationVar(&f.grace, "grace", server.DefaultGrace, "how long requests may go on when the server ends")
	fl.StringVar(&f.logFormat, "log", "text", "the log on stderr: `text|json`")
	fl.StringVar(&f.logLevel, "log-level", "info", "log from this `LEVEL` on: debug (each request), info, warn, error")
	return c
}

func (f *serveFlags) run(c *cobra.Command, store string) (err error) {
	ctx, stop := untilSignal(c.Context())
	defer stop()
	opt, err := f.options(c)
	if err != nil {
		return err
	}
	if opt.CacheDir, err = f.cache(); err != nil {
		return err
	}
	if opt.Storage, err = storage.Open(store, opt.CacheDir); err != nil {
		return err
	}
	if err := f.addUpstream(opt); err != nil {
		return err
	}
	s, err := server.New(ctx, *opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	// Connections that nothing moves on are closed by --idle-timeout, long before the system would ask whether they live.
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("callreel symbols serve: %w", err)
	}
	scheme := "http"
	if f.certificate != "" {
		if l, err = overTLS(l, f.certificate, f.key); err != nil {
			return err
		}
		scheme = "https"
	}
	if _, err := fmt.Fprintf(c.OutOrStdout(), "%s://%s\n", scheme, l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	return s.Serve(ctx, l)
}

// options reads the flags.
func (f *serveFlags) options(c *cobra.Command) (*server.Options, error) {
	opt := &server.Options{
		CacheSize: int64(f.cacheSize), MapMemory: int64(f.mapMemory), MaxBody: int64(f.maxBody), MaxUpload: int64(f.maxUpload), MaxSource: int64(f.maxSource),
		Quota: int64(f.quota), Memory: f.memory.limit(), Builds: f.builds, MaxConnections: f.maxConnections,
		IdleTimeout: f.idle, RequestTimeout: f.request, BuildTimeout: f.build, MissingFor: f.missing, Grace: f.grace,
	}
	for name := range strings.SplitSeq(f.public, ",") {
		switch name = strings.TrimSpace(name); name {
		case "", "none":
		case "all":
			opt.Public = server.Services()
		default:
			opt.Public = append(opt.Public, name)
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usageError("callreel symbols serve: --log-level %s: want debug, info, warn or error", f.logLevel)
	}
	how := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		opt.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), how))
	case "json":
		opt.Log = slog.New(slog.NewJSONHandler(c.ErrOrStderr(), how))
	default:
		return nil, usageError("callreel symbols serve: --log %s: want text or json", f.logFormat)
	}
	if (f.certificate == "") != (f.key == "") {
		return nil, usageError("callreel symbols serve: --tls-cert and --tls-key go together")
	}
	var err error
	if opt.Tokens, err = readTokens(f.tokenFile, tokenVariable); err != nil {
		return nil, err
	}
	if opt.PushTokens, err = readTokens(f.pushTokenFile, pushTokenVariable); err != nil {
		return nil, err
	}
	if err := opt.Check(); err != nil {
		return nil, usageError("callreel symbols serve: %w", err)
	}
	if len(opt.Tokens)+len(opt.PushTokens) == 0 {
		token := rand.Text()
		opt.PushTokens = []string{token}
		newStatus(c.ErrOrStderr()).notice("no token was given; that of this run, which may read and push, is %s", token)
	}
	return opt, nil
}

// cache is the folder for what is received, and for maps out of a bucket.
func (f *serveFlags) cache() (string, error) {
	dir := f.cacheDir
	if dir == "" {
		cache, err := ownfolder.Cache()
		if err != nil {
			return "", fmt.Errorf("callreel symbols serve: there is no place for a cache; give --cache-dir: %w", err)
		}
		dir = filepath.Join(cache, "serve")
	}
	if err := os.MkdirAll(dir, outfile.PrivateFolder); err != nil {
		return "", fmt.Errorf("callreel symbols serve: %w", err)
	}
	return filepath.Abs(dir)
}

// addUpstream has the servers of DEBUGINFOD_URLS asked.
func (f *serveFlags) addUpstream(opt *server.Options) error {
	if !f.debuginfod {
		return nil
	}
	client, err := newDebuginfod("callreel symbols serve")
	if err != nil {
		return err
	}
	if client == nil {
		return nil // the protocol is spoken anyway
	}
	client.CacheDir = filepath.Join(opt.CacheDir, "fetched")
	client.Agent = server.Agent // so that servers that ask each other don't do so for ever
	opt.Upstream = client
	return nil
}
