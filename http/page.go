package gateway

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed page.html
var pageText string

// pageTemplate is parsed at start, so that every test detects an error in it.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// pageContent is the content of the page. Only known callers see applications and probes.
type pageContent struct {
	Version, Socket string
	Known           bool
	Apps            []App
	Probes          []Probe
	Routes          []Route
}

func (s *Server) getPage(x *exchange) error {
	content := pageContent{Version: s.cfg.Version, Routes: s.routes}
	if x.caller.Role >= Read {
		content.Known, content.Socket = true, s.cfg.SocketPath // a path contains the names of users and directories
		content.Apps = s.touchable(x.caller)
		content.Probes = s.visibleProbes(x.caller)
	}
	out := takeBuffer()
	defer giveBuffer(out)
	if err := pageTemplate.Execute(out, content); err != nil {
		return err
	}
	h := x.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	send(x, http.StatusOK, "text/html; charset=utf-8", out.Bytes())
	return nil
}
