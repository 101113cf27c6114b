// Package allowed decides which URIs of a request the gateway may use: measurements are delivered
// to them, and resources of a sirreq are fetched from them. The gateway has other rights in the network
// than its callers, so the configuration names what they may reach. The package imports no other one.
package allowed

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Below reports whether a URI is one of the rules, which are URIs, or lies below one. It compares
// scheme, host and whole parts of the path, so that http://host does not allow http://host.example.
// A rule without a user allows every user of the server.
func Below(rules []string, u *url.URL) bool {
	for _, rule := range rules {
		r, err := url.Parse(rule)
		if err != nil || r.Scheme != u.Scheme || !isLocal(u) && !strings.EqualFold(r.Host, u.Host) {
			continue
		}
		below := strings.TrimSuffix(r.Path, "/") + "/"
		if strings.HasPrefix(u.Path+"/", below) && !strings.Contains(u.Path+"/", "/../") {
			return true
		}
	}
	return false
}

// isLocal reports whether a URI is a path of this machine.
func isLocal(u *url.URL) bool { return u.Scheme == "file" || u.Scheme == "unix" }

// Reach checks the address that a name of a server stands for, before a connection to it. It refuses
// what only the machine itself and its link can reach, unless the URI has the address or localhost:
// the owner of the name could otherwise reach the services of this machine through the gateway.
func Reach(u *url.URL, address string) error {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
		return fmt.Errorf("the name %s has the address %s, which belongs to this machine or its link", u.Hostname(), ip)
	}
	return nil
}
