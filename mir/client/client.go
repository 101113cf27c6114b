package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Options say whom to trust and how to prove who asks. The zero value is right for a gateway of
// this user, and for one of root.
type Options struct {
	User      string // trusted user of the gateway besides root and this user: a name or a uid; "": MIRADOR_GATEWAY_USER
	TokenFile string // for TCP; "": the token of DefaultData
	CA        string // a file with the certificate authority of the gateway's certificate
	Cert, Key string // a client certificate
}

// Client sends requests to one gateway. It may be used by several goroutines.
type Client struct {
	place Place
	base  string
	token string
	own   certificate
	http  *http.Client
}

// New creates a client of the gateway at an address: unix:PATH or http(s)://HOST:PORT. If the
// address is "", it uses MIRADOR_GATEWAY, else the default socket, as every command does. New
// does not connect.
func New(address string, o Options) (*Client, error) {
	place, err := FindPlace(address)
	if err != nil {
		return nil, err
	}
	c := &Client{place: place, base: place.URL}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext}
	if place.Socket != "" {
		users, err := trusted(o.User)
		if err != nil {
			return nil, err
		}
		c.base = "http://mirador"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, place, users)
		}
	} else if err := c.secure(transport, o); err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: transport}
	return c, nil
}

// secure reads the credentials for a gateway over TCP. A missing default token file is not an
// error: the gateway's answer tells where its token is.
func (c *Client) secure(transport *http.Transport, o Options) error {
	file := o.TokenFile
	if file == "" {
		file = filepath.Join(DefaultData(), "token")
	}
	text, err := os.ReadFile(file)
	if err != nil && o.TokenFile != "" {
		return fmt.Errorf("cannot read the token: %w", err)
	}
	c.token = strings.TrimSpace(string(text))
	config := &tls.Config{}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return fmt.Errorf("cannot read the authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("there is no certificate in %s", o.CA)
		}
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return fmt.Errorf("cannot read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
		c.own = certificate{file: o.Cert, leaf: pair.Leaf}
	}
	transport.TLSClientConfig = config
	return nil
}

// Request is a request to the gateway.
type Request struct {
	Method, Path string
	Type, Accept string // Content-Type and Accept; "" omits the header
	Prefer       string
	Body         []byte
	after        string // Last-Event-ID
}

// Reply is the gateway's answer.
type Reply struct {
	Status int
	Type   string
	Body   []byte
}

// Failed reports whether the gateway refused the request.
func (r *Reply) Failed() bool { return r.Status >= http.StatusBadRequest }

// Do sends a request and reads the whole reply.
func (c *Client) Do(ctx context.Context, r Request) (*Reply, error) {
	resp, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("the gateway at %s closed the connection during its reply: %w", c.place, err)
	}
	return &Reply{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) open(ctx context.Context, r Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, c.base+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Content-Type": r.Type, "Accept": r.Accept, "Prefer": r.Prefer, "Last-Event-ID": r.after} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var untrusted *Untrusted
		if errors.As(err, &untrusted) {
			return nil, untrusted
		}
		return nil, &Unreachable{Place: c.place, Err: err, invalid: c.own.invalid()}
	}
	return resp, nil
}
