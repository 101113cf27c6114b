package gateway

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics observes the gateway itself, in a separate registry. The values of labelled
// probes are read for each answer: see series.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	own      *prometheus.Registry
}

func newMetrics(backend Backend) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mirador_http_requests_total", Help: "Requests answered, by route and class of status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mirador_http_request_seconds", Help: "Time to answer a request, by route.",
			Buckets: prometheus.ExponentialBuckets(20e-6, 4, 10),
		}, []string{"method", "route"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.seconds,
		// Without the memory statistics, of which two have the same name in OpenMetrics.
		collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled(), collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsMemory)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("mirador_applications", "Applications.", func() float64 { return float64(len(backend.Apps())) }),
		gauge("mirador_probes", "Probes that were not removed.", func() float64 { return float64(backend.CountProbes()) }),
	)
	m.own = registry
	return m
}

func gauge(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
}

// routeMetrics are the metrics of one route. They keep each counter, because finding it by its
// labels takes longer than counting.
type routeMetrics struct {
	classes [6]atomic.Pointer[prometheus.Counter]
	seconds prometheus.Observer
	find    func(class int) prometheus.Counter
}

var classNames = [6]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

func (m *metrics) route(r *Route) *routeMetrics {
	return &routeMetrics{
		seconds: m.seconds.WithLabelValues(r.Method, r.Pattern),
		find: func(class int) prometheus.Counter {
			return m.requests.WithLabelValues(r.Method, r.Pattern, classNames[class])
		},
	}
}

func (m *routeMetrics) observe(status int, took time.Duration) {
	class := status / 100
	if class < 0 || class >= len(classNames) {
		class = 0
	}
	counter := m.classes[class].Load()
	if counter == nil {
		c := m.find(class)
		counter = &c
		m.classes[class].Store(counter)
	}
	(*counter).Inc()
	m.seconds.Observe(took.Seconds())
}

func (s *Server) getMetrics(x *exchange) error {
	var apps []string
	for name := range s.namesOfTouchable(x.caller) {
		apps = append(apps, name)
	}
	slices.Sort(apps)
	values := prometheus.NewRegistry()
	if err := values.Register(series(s.backend.Labelled(x.r.Context(), apps))); err != nil {
		return err
	}
	promhttp.HandlerFor(prometheus.Gatherers{s.metrics.own, values}, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError,
	}).ServeHTTP(x, x.r)
	return nil
}

func (s *Server) getHealth(x *exchange) error {
	send(x, http.StatusOK, typeText, []byte("ok\n"))
	return nil
}

func (s *Server) getReady(x *exchange) error {
	if s.draining.Load() {
		return NewFault(http.StatusServiceUnavailable, "the gateway is shutting down")
	}
	if err := s.backend.Ready(); err != nil {
		return NewFault(http.StatusServiceUnavailable, err.Error())
	}
	send(x, http.StatusOK, typeText, []byte("ready\n"))
	return nil
}
