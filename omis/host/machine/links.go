//go:build linux

package machine

import (
	"net"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// speed is a class of packets in OMIS: local, fast (Ethernet, ATM) or slow (modem).
type speed uint8

const (
	local speed = iota
	fast
	slow
)

// kinds lists hardware types of links (linux/if_arp.h); other types are fast and have no
// name.
var kinds = map[uint64]struct {
	name string
	speed
}{
	unix.ARPHRD_ETHER: {"Ethernet", fast}, unix.ARPHRD_ATM: {"ATM", fast}, unix.ARPHRD_INFINIBAND: {"InfiniBand", fast},
	unix.ARPHRD_FDDI: {"FDDI", fast}, unix.ARPHRD_IEEE80211: {"WLAN", fast}, unix.ARPHRD_NONE: {"tunnel", fast},
	unix.ARPHRD_PPP: {"PPP", slow}, unix.ARPHRD_SLIP: {"SLIP", slow}, unix.ARPHRD_CSLIP: {"CSLIP", slow},
	unix.ARPHRD_SLIP6: {"SLIP", slow}, unix.ARPHRD_CSLIP6: {"CSLIP", slow},
	unix.ARPHRD_LOOPBACK: {"loopback", local},
}

// link is a network interface with an address of the node. Interfaces without an address,
// such as the ports of a bridge, would count packets twice.
type link struct {
	name, kind, addr string
	speed
}

func (m *Machine) links() ([]link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var links []link
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		addr := address(addrs)
		if addr == "" {
			continue
		}
		l := link{name: i.Name, addr: addr, speed: fast}
		if kind, known := kinds[number(filepath.Join(m.files.sys, "class/net", i.Name, "type")).N]; known {
			l.kind, l.speed = kind.name, kind.speed
		}
		if i.Flags&net.FlagLoopback != 0 {
			l.speed = local
		}
		links = append(links, l)
	}
	return links, nil
}

// address prefers IPv4 addresses, and skips link-local ones.
func address(addrs []net.Addr) (found string) {
	for _, a := range addrs {
		ip, _, err := net.ParseCIDR(a.String())
		switch {
		case err != nil || ip.IsLinkLocalUnicast():
		case ip.To4() != nil:
			return ip.String()
		case found == "":
			found = ip.String()
		}
	}
	return found
}

func (m *Machine) network() ([]omis.Value, error) {
	links, err := m.links()
	if err != nil {
		return nil, err
	}
	n, info := int64(0), []omis.Value{}
	for _, l := range links {
		if l.speed != fast {
			continue
		}
		n++
		info = append(info, omis.String(l.kind), omis.String(l.addr), m.bandwidth(l.name), omis.Float(m.bench.network(l.addr)))
	}
	return []omis.Value{omis.Int(n), omis.List(info...)}, nil
}

// bandwidth returns the vendor's figure in KBytes/s. Virtual links have none.
func (m *Machine) bandwidth(name string) omis.Value {
	megabits := number(filepath.Join(m.files.sys, "class/net", name, "speed"))
	if megabits.Neg {
		return none
	}
	return omis.Uint(megabits.N * 1000 / 8)
}

// packets holds sums over the links of each speed.
type packets struct{ received, sent [slow + 1]uint64 }

func (m *Machine) packets() (p packets, err error) {
	links, err := m.links()
	if err != nil {
		return p, err
	}
	counters, err := m.fs.NetDev()
	if err != nil {
		return p, err
	}
	for _, l := range links {
		// The name of an address can have a label, as in eth0:1.
		name, _, _ := strings.Cut(l.name, ":")
		p.received[l.speed] += counters[name].RxPackets
		p.sent[l.speed] += counters[name].TxPackets
	}
	return p, nil
}
