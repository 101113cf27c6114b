package identity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inetDiagReq is struct inet_diag_req_v2 of the kernel, after the header of the message.
type inetDiagReq struct {
	header           unix.NlMsghdr
	family, protocol uint8
	ext, pad         uint8
	states           uint32
	ports            [4]byte // source and destination, in network byte order
	src, dst         [16]byte
	iface            uint32
	cookie           [2]uint32
}

// Offsets in struct inet_diag_msg. A socket that was closed has no owner any more.
const (
	stateAt, uidAt = 1, 64
	timeWait       = 6
)

// OfLoopback returns the uid that owns the other end of a TCP connection of this machine
// with itself. The kernel finds the socket by the addresses of the connection.
func OfLoopback(conn *net.TCPConn) (int, error) {
	ours, peers := conn.LocalAddr().(*net.TCPAddr).AddrPort(), conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	if !peers.Addr().IsLoopback() {
		return 0, errors.New("the connection comes from another machine")
	}
	// A socket of IPv6 has a peer of IPv4 under a mapped address.
	for _, addr := range []func(netip.Addr) []byte{
		func(a netip.Addr) []byte { return a.Unmap().AsSlice() },
		func(a netip.Addr) []byte { b := a.As16(); return b[:] },
	} {
		uid, err := ownerOf(addr(peers.Addr()), addr(ours.Addr()), peers.Port(), ours.Port())
		if !errors.Is(err, unix.ENOENT) {
			return uid, err
		}
	}
	return 0, errors.New("the other end of the connection is gone")
}

// ownerOf asks the kernel for a socket (sock_diag(7)).
func ownerOf(src, dst []byte, from, to uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	r := inetDiagReq{family: unix.AF_INET, protocol: unix.IPPROTO_TCP, states: ^uint32(0), cookie: [2]uint32{^uint32(0), ^uint32(0)}}
	if len(src) == net.IPv6len {
		r.family = unix.AF_INET6
	}
	r.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(r)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST}
	binary.BigEndian.PutUint16(r.ports[:], from)
	binary.BigEndian.PutUint16(r.ports[2:], to)
	copy(r.src[:], src)
	copy(r.dst[:], dst)
	request := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	var reply [512]byte
	n, _, err := unix.Recvfrom(fd, reply[:], 0)
	if err != nil {
		return 0, err
	}
	const header = unix.SizeofNlMsghdr
	switch kind := binary.NativeEndian.Uint16(reply[4:]); {
	case n >= header+4 && kind == unix.NLMSG_ERROR:
		return 0, syscall.Errno(-int32(binary.NativeEndian.Uint32(reply[header:])))
	case n < header+uidAt+4 || kind != unix.SOCK_DIAG_BY_FAMILY:
		return 0, fmt.Errorf("the kernel answered %d bytes of kind %d", n, kind)
	case reply[header+stateAt] == timeWait:
		return 0, unix.ENOENT
	}
	return int(binary.NativeEndian.Uint32(reply[header+uidAt:])), nil
}
