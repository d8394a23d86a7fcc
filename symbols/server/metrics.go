package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what Prometheus is told.
type metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	sent     *prometheus.CounterVec
	flying   prometheus.Gauge
	frames   prometheus.Counter
	loads    *prometheus.CounterVec
	builds   *prometheus.CounterVec
	building prometheus.Histogram
	pushed   *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "callreel_symbols_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.requests = counter("requests_total", "Requests by service, method and status.", "service", "method", "status")
	m.sent = counter("sent_bytes_total", "Bytes of answers by service.", "service")
	m.loads = counter("map_loads_total", "Symbol maps that were not in memory, by where they came from: disk, storage, built, missing, failed.", "from")
	m.builds = counter("builds_total", "Symbol maps that were to be made, by how that went.", "result")
	m.pushed = counter("pushed_total", "Files that were pushed, by what became of them.", "result")
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "callreel_symbols_request_seconds", Help: "Time of requests by service.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10),
	}, []string{"service"})
	m.building = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "callreel_symbols_build_seconds", Help: "Time that making a symbol map took.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9),
	})
	m.flying = prometheus.NewGauge(prometheus.GaugeOpts{Name: "callreel_symbols_requests_in_flight", Help: "Requests that are being answered."})
	m.frames = prometheus.NewCounter(prometheus.CounterOpts{Name: "callreel_symbols_frames_total", Help: "Frames that were asked for."})
	m.registry.MustRegister(m.seconds, m.building, m.flying, m.frames,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callreel_symbols_map_memory_bytes", Help: "Open symbol maps, with the names kept of them."},
			func() float64 { return float64(s.maps.memory()) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

func (m *metrics) serve(w http.ResponseWriter, r *http.Request) error {
	m.handler.ServeHTTP(w, r)
	return nil
}

// request counts one. What the client has named itself becomes no label.
func (m *metrics) request(service, method string, status int, took time.Duration, sent int64) {
	if service == "" {
		service = "none"
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(service, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(service).Observe(took.Seconds())
	m.sent.WithLabelValues(service).Add(float64(sent))
}
