package gateway

import (
	"context"
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
	"mirador/sir"
	"mirador/sir/fetch"
	"mirador/sir/source"
)

// Config configures a Server.
type Config struct {
	SocketPath string // for messages; "" if there is no Unix socket
	Token      Token
	Decoder    mir.Decoder // its limit of bytes applies to the body of every request
	Hosts      []string    // names of the gateway over TCP, in addition to localhost
	// Resources are folders, and URLs of servers, whose files a sirreq may name, in addition to the
	// applications' programs.
	Resources []string
	// Sources returns the structure of the program that source files are compiled to. Their texts may
	// be made to harm parsers. An error that is a *source.Error is about one of the resources.
	Sources     func(ctx context.Context, program string, resources []source.Resource) (sir.Program, error)
	Fetched     string       // the folder of files from servers, while a sirreq needs them
	FetchLimits fetch.Limits // the zero value means fetch.DefaultLimits
	Version     string
	// Notation prints a reply in OMIS notation.
	Notation func(omis.Reply) string
	Log      *slog.Logger // nil means slog.Default
	Limits   Limits       // of streams; the zero value means DefaultLimits
	Rate     int          // requests that a caller may send in a second; 0: any number
	// ResolveLinks returns a path without symbolic links; nil means filepath.EvalSymlinks.
	ResolveLinks func(path string) (string, error)
	// ProcessOwner returns the uid of a process's owner; nil means identity.OfProcess.
	ProcessOwner func(pid int) (int, error)
}

// Server answers HTTP requests for a Backend. It embeds the handlers of its routes, grouped
// by what they work on, each with the state that it needs.
type Server struct {
	*access
	appHandlers
	documentHandlers
	probeHandlers
	toolHandlers

	cfg      Config
	backend  Backend
	log      *slog.Logger
	router   *chi.Mux
	routes   []Route
	metrics  *metrics
	times    *times
	streams  *streams
	idPrefix string
	nextID   atomic.Uint64
	draining atomic.Bool
	rates    *rates
}

var _ http.Handler = (*Server)(nil)

// New returns a Server.
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
	if cfg.FetchLimits == (fetch.Limits{}) {
		cfg.FetchLimits = fetch.DefaultLimits()
	}
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits()
	}
	var prefix [4]byte
	rand.Read(prefix[:])
	who := &access{cfg.Token, cfg.Hosts, backend.Apps, cfg.ProcessOwner}
	patience := &times{headerTimeout, bodyTimeout}
	bodies := bodyReader{int64(cfg.Decoder.Limits.Bytes), patience}
	open := &streams{limits: cfg.Limits, ending: make(chan struct{}), byUser: make(map[int]int)}
	s := &Server{
		access:           who,
		appHandlers:      appHandlers{who, bodies, backend, cfg.Limits.Applications},
		documentHandlers: documentHandlers{who, bodies, backend, cfg.Decoder, cfg.Resources, cfg.ResolveLinks, cfg.Fetched, cfg.FetchLimits, make(chan struct{}, mostFetching), make(chan struct{}, mostReading), cfg.Log, cfg.Sources},
		probeHandlers:    probeHandlers{who, backend, open},
		toolHandlers:     toolHandlers{who, bodies, backend, open, cfg.Notation},
		cfg:              cfg, backend: backend, log: cfg.Log,
		routes: Routes(), metrics: newMetrics(backend), rates: newRates(cfg.Rate), times: patience, streams: open,
		idPrefix: hex.EncodeToString(prefix[:]) + "-",
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
		if route.Method == http.MethodGet { // net/http omits the body (RFC 9110, 9.3.2)
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
