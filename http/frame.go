package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"mirador/mir"
)

// exchange is a request and its reply. It is the ResponseWriter of the handlers, and records
// the status and size of the reply. Exchanges are reused, so a handler must not keep one.
type exchange struct {
	http.ResponseWriter
	r      *http.Request
	caller *Caller
	id     string
	status int
	size   int64
	place  mir.Position // where the document of the request begins
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// param returns a part of the path. The router splits the encoded path, so that %2F does not
// separate parts.
func (x *exchange) param(name string) string {
	value := chi.URLParam(x.r, name)
	if x.r.URL.RawPath == "" {
		return value
	}
	plain, err := url.PathUnescape(value)
	if err != nil {
		return value // no name is equal to it
	}
	return plain
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(b)
	x.size += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController flush and set deadlines.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// frame wraps a route's handler: request id, identity, role, error, panic, log
// and metrics.
func (s *Server) frame(route *Route) http.HandlerFunc {
	seen := s.metrics.route(route)
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		defer handling(r.Context())()
		x := exchanges.Get().(*exchange)
		*x = exchange{ResponseWriter: w, r: r}
		defer func() {
			if p := recover(); p != nil {
				s.panicked(x, route, p)
			}
			took := time.Since(start)
			seen.observe(x.status, took)
			s.logRequest(x, route, took)
			*x = exchange{}
			exchanges.Put(x)
		}()
		x.id = s.requestID(r)
		w.Header()["X-Request-Id"] = []string{x.id}
		if err := s.serve(x, route); err != nil {
			s.fail(x, route, err)
		}
	}
}

func (s *Server) serve(x *exchange, route *Route) error {
	x.caller = s.identify(x.r)
	if err := s.checkHost(x.r); err != nil {
		return err
	}
	if x.caller.Role > Nobody {
		recognise(x.r.Context())
	}
	if err := s.rates.admit(x); err != nil {
		return err
	}
	if err := admit(x.caller, route.Role); err != nil {
		return err
	}
	return route.handle(s, x)
}

// fail answers with an error, in the format of the route. If a part of the reply has been
// sent already, it closes the connection, so that the caller notices that the document is
// incomplete.
func (s *Server) fail(x *exchange, route *Route, err error) {
	if errors.Is(err, context.Canceled) && x.r.Context().Err() != nil {
		x.status = statusClientGone
		return
	}
	fault := faultOf(err)
	if fault.Status >= http.StatusInternalServerError {
		s.log.Error("request failed", "request", x.id, "route", route.Pattern, "error", err)
	}
	if x.status != 0 {
		panic(http.ErrAbortHandler)
	}
	if fault.Status == http.StatusUnauthorized {
		x.Header().Set("WWW-Authenticate", `Bearer realm="mirador"`)
	}
	if route.Documents {
		writeErrors(x, fault)
	} else {
		writeProblem(x, fault)
	}
}

// statusClientGone is the status in the log if the caller closed the connection.
const statusClientGone = 499

func (s *Server) panicked(x *exchange, route *Route, p any) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.log.Error("panic in a handler", "request", x.id, "route", route.Pattern, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if x.status != 0 {
		panic(http.ErrAbortHandler)
	}
	fault := NewFault(http.StatusInternalServerError,
		"the gateway made a mistake; its log has the details under request "+x.id)
	if route.Documents {
		writeErrors(x, fault)
		return
	}
	writeProblem(x, fault)
}

// requestID returns the caller's X-Request-Id if it is safe in a log line, or else a new id.
func (s *Server) requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && plainID(given[0]) {
		return given[0]
	}
	buf := make([]byte, 0, 24)
	buf = append(buf, s.idPrefix...)
	return string(strconv.AppendUint(buf, s.nextID.Add(1), 36))
}

func plainID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

func (s *Server) logRequest(x *exchange, route *Route, took time.Duration) {
	level := slog.LevelDebug
	if x.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	if !s.log.Enabled(x.r.Context(), level) {
		return
	}
	caller := "unknown"
	if x.caller != nil {
		caller = x.caller.Name
	}
	s.log.LogAttrs(x.r.Context(), level, "request",
		slog.String("request", x.id), slog.String("method", x.r.Method), slog.String("route", route.Pattern),
		slog.String("caller", caller), slog.Int("status", x.status), slog.Int64("bytes", x.size), slog.Duration("took", took))
}
