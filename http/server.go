package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync/atomic"

	"github.com/go-chi/chi/v5"

	"mirador/http/identity"
	"mirador/mir"
	"mirador/omis"
)

// Config is what a Server needs to know.
type Config struct {
	SocketPath string // for messages; "" if there is no Unix socket
	Token      Token
	Decoder    mir.Decoder // its limit of bytes bounds every request's body
	Hosts      []string    // names, besides localhost, by which it is reached over TCP
	Resources  []string    // folders whose files a sirreq may name, besides the applications' own programs
	Version    string
	// Notation prints a reply in OMIS notation.
	Notation func(omis.Reply) string
	Log      *slog.Logger // nil: slog.Default()
	Limits   Limits       // of streams; none: DefaultLimits
	// ResolveLinks returns a path without symbolic links; nil: filepath.EvalSymlinks.
	ResolveLinks func(path string) (string, error)
	// ProcessOwner is the uid of a process' owner; nil: identity.OfProcess.
	ProcessOwner func(pid int) (int, error)
}

// Server answers HTTP requests for a Backend.
type Server struct {
	cfg      Config
	backend  Backend
	token    Token
	log      *slog.Logger
	router   *chi.Mux
	routes   []Route
	metrics  *metrics
	times    times
	idPrefix string
	nextID   atomic.Uint64
	draining atomic.Bool
	streams  streamCount
	// ending is closed when the server begins to shut down: streams have no end
	// of their own, and Shutdown waits for them.
	ending chan struct{}
}

var _ http.Handler = (*Server)(nil)

// New makes a Server.
func New(cfg Config, backend Backend) *Server {
	if cfg.Decoder.Limits == (mir.Limits{}) {
		cfg.Decoder.Limits = mir.RequestLimits()
	}
	if cfg.ProcessOwner == nil {
		cfg.ProcessOwner = identity.OfProcess
	}
	if cfg.ResolveLinks == nil {
		cfg.ResolveLinks = filepath.EvalSymlinks
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits()
	}
	var prefix [4]byte
	rand.Read(prefix[:])
	s := &Server{
		cfg: cfg, backend: backend, token: cfg.Token, log: cfg.Log,
		routes: Routes(), metrics: newMetrics(backend),
		times:    times{headerTimeout, bodyTimeout},
		idPrefix: hex.EncodeToString(prefix[:]) + "-",
		ending:   make(chan struct{}),
	}
	s.router = s.newRouter()
	return s
}

func (s *Server) newRouter() *chi.Mux {
	router := chi.NewRouter()
	for i := range s.routes {
		route := &s.routes[i]
		handle := s.frame(route)
		router.Method(route.Method, route.Pattern, handle)
		if route.Method == http.MethodGet { // net/http leaves the body out (RFC 9110, 9.3.2)
			router.Method(http.MethodHead, route.Pattern, handle)
		}
	}
	router.NotFound(s.frame(&Route{Pattern: "unknown", handle: (*Server).notFound}))
	router.MethodNotAllowed(s.frame(&Route{Pattern: "unknown", handle: (*Server).methodNotAllowed}))
	return router
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }

func (s *Server) notFound(x *exchange) error {
	return NewFault(http.StatusNotFound, "there is nothing at "+x.r.URL.Path+"; GET / lists what there is")
}

func (s *Server) methodNotAllowed(x *exchange) error {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		if s.router.Match(chi.NewRouteContext(), method, x.r.URL.Path) {
			x.Header().Add("Allow", method)
		}
	}
	return NewFault(http.StatusMethodNotAllowed, x.r.Method+" is not served at "+x.r.URL.Path+"; GET / lists what is")
}
