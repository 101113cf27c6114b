package deliver

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// The configuration allows the name of a server, but the owner of the name's DNS zone decides
// which addresses it has. Such an answer must not lead to services that only this machine, or the host
// of a virtual machine, may use: they often trust everyone who can reach them.

// mayReach is called before a connection to an address of the server. It refuses what only the machine
// itself can mean, unless the destination names that.
func (a Address) mayReach(_, address string, _ syscall.RawConn) error {
	name := strings.TrimSuffix(strings.ToLower(a.url.Hostname()), ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
		return fmt.Errorf("the name %s has the address %s, which belongs to this machine or its link: a destination there must have the address instead of a name (mirador serve --deliver http://%s)",
			a.url.Hostname(), ip, at)
	}
	return nil
}
