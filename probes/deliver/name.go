package deliver

import (
	"fmt"
	"syscall"

	"mirador/mir/allowed"
)

// The configuration allows the name of a server, but the owner of the name's DNS zone decides
// which addresses it has. Such an answer must not lead to services that only this machine, or the host
// of a virtual machine, may use: they often trust everyone who can reach them.

// mayReach is called before a connection to an address of the server. It refuses addresses that belong
// to this machine or its link, unless the destination has an address or localhost in place of a name.
func (a Address) mayReach(_, address string, _ syscall.RawConn) error {
	if err := allowed.Reach(a.url, address); err != nil {
		return fmt.Errorf("%w: a destination there must have the address instead of a name (mirador serve --deliver http://%s)", err, address)
	}
	return nil
}
