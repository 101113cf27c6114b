package deliver

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// nameServer gives every name the same IPv4 addresses.
type nameServer struct {
	addresses atomic.Pointer[[]netip.Addr]
}

func (n *nameServer) set(list ...netip.Addr) { n.addresses.Store(&list) }

// resolver returns a resolver that asks the server, by streams, which have room for many addresses.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.serve(ours)
		return theirs, nil
	}}
}

func (n *nameServer) serve(c net.Conn) {
	defer c.Close()
	for {
		var size uint16
		if err := binary.Read(c, binary.BigEndian, &size); err != nil {
			return
		}
		query := make([]byte, size)
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		if _, err := c.Write(n.answer(query)); err != nil {
			return
		}
	}
}

// answer returns the answer to a query, with its length (RFC 1035, 4).
func (n *nameServer) answer(query []byte) []byte {
	question := query[12 : 12+bytes.IndexByte(query[12:], 0)+5]
	var list []netip.Addr
	if question[len(question)-3] == 1 { // type A
		list = *n.addresses.Load()
	}
	text := append([]byte{}, query[:2]...)
	text = append(text, 0x81, 0x80, 0, 1)
	text = binary.BigEndian.AppendUint16(text, uint16(len(list)))
	text = append(append(text, 0, 0, 0, 0), question...)
	for _, a := range list {
		ip := a.As4()
		text = append(append(text, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)
}

// named returns a queue to a name instead of the server's address.
func named(t *testing.T, s *server, name string) (*Queues, *nameServer, Destination) {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	uri := "http://" + net.JoinHostPort(name, u.Port())
	all, names := OpenQueues(Rules{uri}, newMemory(), quiet()), new(nameServer)
	names.set()
	all.names, all.answerTime = names.resolver(), time.Second/2
	return all, names, to(t, all, uri)
}

var here = netip.MustParseAddr("127.0.0.1")

// TestNamesThatChange delivers to a name that first has very many addresses at which nothing listens,
// and then the right one.
func TestNamesThatChange(t *testing.T) {
	s := newServer(t)
	all, names, d := named(t, s, "in.localhost")
	var many []netip.Addr
	for n := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{127, 1, 0, byte(n)}))
	}
	names.set(many...)
	send(d, value(1))
	eventually(t, "an address is refused", func() bool { return strings.Contains(all.States("probe-1")[0].Failure, "127.1.") })
	send(d, value(2))
	if state := all.States("probe-1")[0]; state.Waiting != 2 || state.Lost != 0 {
		t.Errorf("the state is %+v", state)
	}
	names.set(here)
	eventually(t, "both arrive", func() bool { return len(s.list()) == 2 })
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNamesWithoutAnswer checks that a name server that never answers takes no more than the time of a
// request.
func TestNamesWithoutAnswer(t *testing.T) {
	all, _, d := named(t, newServer(t), "in.localhost")
	all.names.Dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, ours)
		return theirs, nil
	}
	send(d, value(1))
	eventually(t, "the failure shows", func() bool { return strings.Contains(all.States("probe-1")[0].Failure, "deadline exceeded") })
	if err := all.Close(t.Context()); err != nil { // does not wait for the name server
		t.Error(err)
	}
}

// TestNamesOfThisMachine checks that a name of another machine does not lead to services of this one,
// whatever its name server answers.
func TestNamesOfThisMachine(t *testing.T) {
	s := newServer(t)
	all, names, d := named(t, s, "measurements.example")
	names.set(here)
	send(d, value(1))
	const want = "the name measurements.example has the address 127.0.0.1, which belongs to this machine"
	eventually(t, want, func() bool { return strings.Contains(all.States("probe-1")[0].Failure, want) })
	if got := s.list(); len(got) > 0 {
		t.Errorf("the server received %q", got)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAddressesOfNames(t *testing.T) {
	for uri, refused := range map[string]string{
		"http://far.example":   "127.0.0.1:80 127.7.7.7:80 0.0.0.0:80 169.254.169.254:80 224.0.0.1:80 [::1]:80 [::]:80 [fe80::1%lo]:80 [ff02::1]:80 [::ffff:127.0.0.1]:80",
		"http://LocalHost.:80": "", "http://a.localhost": "", "http://127.0.0.1": "", "http://[::1]": "",
	} {
		for _, address := range []string{
			"127.0.0.1:80", "127.7.7.7:80", "0.0.0.0:80", "169.254.169.254:80", "224.0.0.1:80", "[::1]:80", "[::]:80", "[fe80::1%lo]:80", "[ff02::1]:80", "[::ffff:127.0.0.1]:80",
			"192.0.2.1:80", "10.1.2.3:80", "[2001:db8::1]:80", "[fd00::1]:80",
		} {
			err := parsed(t, uri).mayReach("tcp", address, nil)
			if want := slices.Contains(strings.Fields(refused), address); (err != nil) != want {
				t.Errorf("%s at %s: %v", uri, address, err)
			}
		}
	}
}
