package gateway

import (
	"context"
	"crypto/x509"
	"strings"

	"mirador/probes/deliver"
)

// Caller identifies the sender of a request.
type Caller struct {
	Name string // for the log: "uid 1000", "token", "certificate alice"
	Role Role
	UID  int  // the uid at the other end of the Unix socket; -1 over TCP
	All  bool // may touch processes of every user
}

// MayTouch reports whether the caller may observe processes of a user. The rule is that of
// ptrace.
func (c *Caller) MayTouch(uid int) bool { return c.All || (c.UID >= 0 && c.UID == uid) }

// rights returns the user as whom the gateway writes files for the caller. A caller who may
// do everything with all processes may also write files as the gateway's user.
func (c *Caller) rights() deliver.User {
	return deliver.User{UID: c.UID, Trusted: c.All && c.Role == Debug}
}

type callerKey struct{}

// withCaller adds the identity of a connection's peer to its context.
func withCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// stranger is a caller without any proof of identity.
var stranger = &Caller{Name: "stranger", UID: -1}

var tokenHolder = &Caller{Name: "token", UID: -1, Role: Debug, All: true}

// certified returns the caller with a client certificate that the server's authority signed.
// An organisational unit "mirador:ROLE" gives the role; without one it is read.
func certified(cert *x509.Certificate) *Caller {
	c := &Caller{Name: "certificate " + cert.Subject.CommonName, UID: -1, Role: Read, All: true}
	for _, unit := range cert.Subject.OrganizationalUnit {
		if name, ok := strings.CutPrefix(unit, "mirador:"); ok {
			if role, ok := ParseRole(name); ok {
				c.Role = role
			}
		}
	}
	return c
}
