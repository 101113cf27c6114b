package gateway

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"

	"mirador/probes/deliver"
)

// Caller is who sends a request.
type Caller struct {
	Name string // for the log: "uid 1000", "token", "certificate alice"
	Role Role
	UID  int  // the uid at the other end of the Unix socket; -1 over TCP
	All  bool // may touch processes of every user
}

// MayTouch tells whether the caller may observe processes of a user: what ptrace
// would let that user do.
func (c *Caller) MayTouch(uid int) bool { return c.All || (c.UID >= 0 && c.UID == uid) }

// rights returns the user whose files the caller may have written. Whoever may do everything
// with processes may also write files as the gateway's user.
func (c *Caller) rights() deliver.User {
	return deliver.User{UID: c.UID, Trusted: c.All && c.Role == Debug}
}

type callerKey struct{}

// withCaller remembers the identity that a connection brought with it.
func withCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// stranger is somebody who showed nothing.
var stranger = &Caller{Name: "stranger", UID: -1}

// identify finds out who sends a request: the peer of the Unix socket, the
// holder of a verified client certificate, or of the token.
func (s *Server) identify(r *http.Request) *Caller {
	if c, ok := r.Context().Value(callerKey{}).(*Caller); ok {
		return c
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return certified(r.TLS.PeerCertificates[0])
	}
	// The scheme is compared without regard to case (RFC 9110, 11.1).
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && s.token.matches(strings.TrimSpace(token)) {
		return tokenHolder
	}
	return stranger
}

var tokenHolder = &Caller{Name: "token", UID: -1, Role: Debug, All: true}

// certified makes a caller of a client certificate that the server's authority
// signed. An organisational unit "mirador:ROLE" gives the role, read if none does.
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

// admit checks the caller's role.
func (s *Server) admit(c *Caller, need Role) error {
	switch {
	case c.Role >= need:
		return nil
	case c.Role == Nobody:
		return &Fault{Status: http.StatusUnauthorized, Messages: []string{fmt.Sprintf(
			"who are you? Over TCP send the header \"Authorization: Bearer TOKEN\"; the token is in the file %s of the gateway's data directory, which \"mirador serve\" logs when it starts. The Unix socket needs none",
			TokenFile)}}
	}
	return &Fault{Status: http.StatusForbidden, Messages: []string{fmt.Sprintf(
		"%s has the role %s, this takes %s", c.Name, c.Role, need)}}
}
