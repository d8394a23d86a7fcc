package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// A viewer shows a recording. One of its own starts with a reel, one of others' with a file that callreel export has made of it.
type viewer struct {
	name   string
	format string // of callreel export; "" for the reel
	// run takes one turn, and returns seconds: until the picture was there, or what is to be measured instead, and the CPU time of
	// all processes that had part in it.
	run func(context.Context, *viewing) (wall, cpu float64, err error)
}

// viewing is what viewers have at their turn.
type viewing struct {
	config
	reel    string
	file    string          // the viewer's export
	browser context.Context // a tab of it
	address string          // of the folders of others' pages, and of the exports
}

var viewers = []viewer{
	{"callreel view", "", viewByCallreel},
	{"speedscope's page", "speedscope", viewBySpeedscope},
	{"speedscope's importer alone, in node", "speedscope", importBySpeedscope},
	{"Chrome's trace viewer (catapult)", "chrome", viewByCatapult},
}

// measureViewers measures how long it takes until a recording of a million events is on the screen: after callreel view is
// started, and after a page that is served on this machine is gone to. The browser runs already, all use the same one.
func measureViewers(ctx context.Context, c config) []row {
	const events = 1_000_000
	what := fmt.Sprintf("first picture of %d M events", events/1_000_000)
	v, end, err := newViewing(ctx, c, events)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	defer end()
	type figures struct {
		wall, cpu []float64
		err       error
	}
	all, sizes := make([]figures, len(viewers)), make([]int64, len(viewers))
	for i, w := range viewers {
		if w.format != "" {
			sizes[i], all[i].err = v.export(ctx, w.format)
		}
	}
	for range c.rounds {
		for i, w := range viewers {
			f := &all[i]
			if f.err != nil {
				continue
			}
			v.file = v.exported(w.format)
			wall, cpu, err := w.run(ctx, v)
			f.wall, f.cpu, f.err = append(f.wall, wall), append(f.cpu, cpu), err
		}
	}
	var rows []row
	for i, w := range viewers {
		f := &all[i]
		if f.err != nil {
			rows = append(rows, missing(what+": "+w.name, "", f.err))
			continue
		}
		r := row{what: what + ": " + w.name, value: fmt.Sprintf("%.2f s, %.2f s CPU", median(f.wall), median(f.cpu))}
		if i > 0 {
			r.note = fmt.Sprintf("of %.0f MB", float64(sizes[i])/1e6)
			if ours := &all[0]; ours.err == nil {
				r.ratio = fmt.Sprintf("%.1f ×, CPU %.1f ×", medianRatio(f.wall, ours.wall), medianRatio(f.cpu, ours.cpu))
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func newViewing(ctx context.Context, c config, events uint64) (v *viewing, end func(), err error) {
	v = &viewing{config: c, reel: filepath.Join(c.dir, "viewers.reel")}
	if err := writeIndexed(ctx, v.reel, events, events/viewSwitches, 0); err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	v.address = "http://" + listener.Addr().String()
	files := http.NewServeMux()
	files.Handle("/exports/", http.StripPrefix("/exports/", http.FileServer(http.Dir(c.dir))))
	files.Handle("/speedscope/", http.StripPrefix("/speedscope/", http.FileServer(http.Dir(filepath.Join(readersFolder(), "node_modules", "speedscope", "dist", "release")))))
	if page, err := realtest.TraceViewer.Find(); err == nil {
		files.Handle("/catapult/", http.StripPrefix("/catapult/", http.FileServer(http.Dir(filepath.Dir(page)))))
	}
	files.HandleFunc("/catapult.html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(catapultPage)) // the browser says what it lacks
	})
	server := &http.Server{Handler: files, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	tab, endBrowser, err := newBrowser(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	v.browser = tab
	return v, func() { endBrowser(); _ = server.Close() }, nil
}

// readersFolder is where the tests of exports have the real readers of them.
func readersFolder() string { return filepath.Join(realtest.Root(), "export", "testdata", "readers") }

func (v *viewing) exported(format string) string {
	return filepath.Join(v.dir, "viewers."+format+".json")
}

// export makes a viewer's file, and returns its size.
func (v *viewing) export(ctx context.Context, format string) (int64, error) {
	out := v.exported(format)
	if said, err := exec.CommandContext(ctx, v.callreel, "export", v.reel, "--format", format, "-f", "-o", out).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("callreel export: %w: %s", err, said)
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// inTab goes to an address in a tab of its own until something is drawn there.
func (v *viewing) inTab(url func() (string, error), drawn string) (wall, cpu float64, err error) {
	tab, end, err := newTab(v.browser)
	if err != nil {
		return 0, 0, err
	}
	defer end()
	before, err := browserProcesses(v.browser)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	address, err := url()
	if err != nil {
		return 0, 0, err
	}
	if err := showUntil(tab, address, drawn); err != nil {
		return 0, 0, err
	}
	wall = time.Since(start).Seconds()
	cpu, err = usedSince(v.browser, before)
	return wall, cpu, err
}

func viewByCallreel(ctx context.Context, v *viewing) (wall, cpu float64, err error) {
	var server *pageServer
	wall, cpu, err = v.inTab(func() (string, error) {
		if server, err = startPageServer(ctx, v.config, v.reel); err != nil {
			return "", err
		}
		return server.allRows(), nil
	}, drawn)
	if server == nil {
		return 0, 0, err
	}
	served, endErr := server.end()
	return wall, cpu + served, errors.Join(err, endErr)
}

func viewBySpeedscope(_ context.Context, v *viewing) (wall, cpu float64, err error) {
	if _, err := realtest.NPMReaders.Find(); err != nil {
		return 0, 0, err
	}
	page := v.address + "/speedscope/#profileURL=" + v.address + "/exports/" + filepath.Base(v.file)
	// A flame graph has canvases of its own above the one that all draw on.
	return v.inTab(func() (string, error) { return page, nil }, `document.title.endsWith(" - speedscope") && document.querySelectorAll("canvas").length > 1`)
}

func importBySpeedscope(ctx context.Context, v *viewing) (wall, cpu float64, err error) {
	if _, err := realtest.NPMReaders.Find(); err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(readersFolder(), "speedscope.mjs"), "--only-import", v.file)
	start := time.Now()
	out, err := cmd.Output()
	wall = time.Since(start).Seconds()
	if err != nil {
		return 0, 0, fmt.Errorf("speedscope in node: %w", err)
	}
	if n := strings.TrimSpace(string(out)); n != "8" {
		return 0, 0, fmt.Errorf("speedscope in node: it has %.40q profiles, not one for each of 8 threads", n)
	}
	return wall, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

func viewByCatapult(_ context.Context, v *viewing) (wall, cpu float64, err error) {
	if _, err := realtest.TraceViewer.Find(); err != nil {
		return 0, 0, err
	}
	page := v.address + "/catapult.html#/exports/" + filepath.Base(v.file)
	return v.inTab(func() (string, error) { return page, nil }, `document.documentElement.dataset.drawn === "yes"`)
}

// catapultPage shows the trace that its address names in Chrome's trace viewer, as that is to be embedded (its
// docs/embedding-trace-viewer.md), and says when it has been drawn.
const catapultPage = `<!doctype html>
<meta charset="utf-8">
<script src="/catapult/webcomponents.min.js"></script>
<link rel="import" href="/catapult/trace_viewer_full.html">
<style>html, body, #viewer { margin: 0; width: 100%; height: 100%; overflow: hidden; }</style>
<body>
<script>
document.addEventListener("WebComponentsReady", async () => {
  const tracks = document.createElement("track-view-container"), viewer = document.createElement("tr-ui-timeline-view");
  tracks.id = "track_view_container";
  viewer.id = "viewer";
  viewer.track_view_container = tracks;
  Polymer.dom(viewer).appendChild(tracks);
  viewer.globalMode = true;
  Polymer.dom(document.body).appendChild(viewer);
  const trace = await (await fetch(location.hash.slice(1))).text();
  const model = new tr.Model();
  await new tr.importer.Import(model, new tr.importer.ImportOptions()).importTracesWithProgressDialog([trace]);
  // All that is on the screen is drawn in one frame, which the viewer asks for.
  const canvas = CanvasRenderingContext2D.prototype, fill = canvas.fillRect;
  canvas.fillRect = function (...box) {
    canvas.fillRect = fill;
    requestAnimationFrame(() => { document.documentElement.dataset.drawn = "yes"; });
    return fill.apply(this, box);
  };
  viewer.model = model;
});
</script>
`
