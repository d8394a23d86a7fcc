package viewer

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/internal/safejson"
)

// broadcast passes events on to all pages that listen.
type broadcast struct {
	mu        sync.Mutex
	listeners map[chan message]bool
}

// message is an event as a stream has it.
type message struct {
	kind string
	data []byte // JSON
}

const (
	// maxListeners bounds the streams; a browser has one for each page.
	maxListeners = 64
	// maxWaiting is how many events wait for a page that doesn't read. What comes then is left out: each event says how things
	// are, not what has changed.
	maxWaiting = 256
)

func newBroadcast() *broadcast { return &broadcast{listeners: map[chan message]bool{}} }

func newMessage(kind string, v any) message {
	data, err := safejson.Marshal(v)
	if err != nil { // these have no part that could fail
		data = []byte("{}")
	}
	return message{kind, data}
}

func (m message) String() string { return fmt.Sprintf("event: %s\ndata: %s\n\n", m.kind, m.data) }

// send tells every page.
func (b *broadcast) send(kind string, v any) {
	m := newMessage(kind, v)
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listeners {
		select {
		case c <- m:
		default:
		}
	}
}

// listen returns where events come; nil if too many listen.
func (b *broadcast) listen() chan message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.listeners) >= maxListeners {
		return nil
	}
	c := make(chan message, maxWaiting)
	b.listeners[c] = true
	return c
}

func (b *broadcast) leave(c chan message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, c)
}

// rarely says now and then that something is to be told again.
type rarely struct{ last atomic.Int64 }

// tellAgain is how often pages are told of progress.
const tellAgain = 100 * time.Millisecond

func (r *rarely) again() bool {
	now, last := time.Now().UnixNano(), r.last.Load()
	return now-last >= int64(tellAgain) && r.last.CompareAndSwap(last, now)
}

// streamEvery is how often a silent stream has a sign of life, by which the end of the connection is noticed.
const streamEvery = 15 * time.Second

// stream is api/events (HTML Living Standard §9.2).
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	c := s.events.listen()
	if c == nil {
		return failed(http.StatusTooManyRequests, "too many pages listen")
	}
	defer s.events.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	text := fmt.Sprintf("retry: 1000\nevent: hello\ndata: {\"reels\":%d}\n\n", len(s.reels))
	for _, rec := range s.reels {
		for _, m := range rec.news() {
			text += m.String()
		}
	}
	for {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // of what can't have one nothing is expected
		if _, err := w.Write([]byte(text)); err != nil {
			return nil // the page has gone
		}
		if err := out.Flush(); err != nil {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case m := <-c:
			text = m.String()
		case <-tick.C:
			text = ":\n\n"
		}
	}
}
