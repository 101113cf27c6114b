package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// checkHost refuses requests to a host name that is not the gateway's. A page in a
// browser could reach the gateway by a name of its own that it has the browser
// resolve to 127.0.0.1, and read the answers (DNS rebinding). An address is no such
// name. TLS has checked the name, and a browser reaches no Unix socket.
func (s *Server) checkHost(r *http.Request) error {
	if !overTCP(r.Context()) || r.TLS != nil || s.servesHost(r.Host) {
		return nil
	}
	return NewFault(http.StatusMisdirectedRequest, fmt.Sprintf(
		"this gateway is not called %q: use its address or localhost, or start it with \"mirador serve --host NAME\"", r.Host))
}

func (s *Server) servesHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(s.cfg.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}
