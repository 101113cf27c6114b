package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// Unreachable reports that no gateway answered.
type Unreachable struct {
	Place   Place
	Err     error
	invalid string // why no gateway accepts this client's certificate
}

func (e *Unreachable) Error() string {
	var unverified *tls.CertificateVerificationError
	if errors.As(e.Err, &unverified) {
		return fmt.Sprintf("nothing was sent to %s, because its certificate cannot be verified (%v): %s", e.Place, unverified.Err, renewal(unverified.Err))
	}
	reason, connected := e.Err.Error(), true
	var op *net.OpError
	if errors.As(e.Err, &op) {
		reason, connected = op.Err.Error(), op.Op != "dial"
	}
	if connected && e.invalid != "" {
		return fmt.Sprintf("the gateway at %s closed the connection (%s): %s", e.Place, reason, e.invalid)
	}
	return fmt.Sprintf("no gateway at %s (%s): start one with \"mirador serve\", or say where it is with --gateway or MIRADOR_GATEWAY", e.Place, reason)
}

func (e *Unreachable) Unwrap() error { return e.Err }

// renewal says what helps against a gateway's certificate that cannot be verified.
func renewal(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return "start the gateway again with a certificate that is valid now"
	}
	return "name the authority that signed it with --ca"
}

// certificate is what this client shows to the gateway.
type certificate struct {
	file string
	leaf *x509.Certificate // nil if the client has none
}

// invalid says why no gateway accepts the certificate now. A gateway's own words may be lost:
// it closes the connection while the request is on its way.
func (c certificate) invalid() string {
	switch now := time.Now(); {
	case c.leaf == nil:
		return ""
	case now.After(c.leaf.NotAfter):
		return fmt.Sprintf("the client certificate %s expired at %s", c.file, c.leaf.NotAfter.Format(time.RFC3339))
	case now.Before(c.leaf.NotBefore):
		return fmt.Sprintf("the client certificate %s is valid from %s on", c.file, c.leaf.NotBefore.Format(time.RFC3339))
	}
	return ""
}
