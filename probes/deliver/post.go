package deliver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// post is a sink that posts each document to a server. Headers say which document it is.
type post struct {
	url    string
	client *http.Client
}

// answerTime limits the time of a request to a server, from finding its address to the last
// byte that is read of its answer.
const answerTime = 10 * time.Second

// newPost returns a post that looks names up by a resolver; nil is that of the machine.
func newPost(a Address, answerTime time.Duration, names *net.Resolver) *post {
	dialer := &net.Dialer{Resolver: names, Control: a.mayReach}
	return &post{url: a.URI, client: &http.Client{
		Timeout: answerTime,
		// The configuration allows the URL, not another one that a server may name.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
	}}
}

func (p *post) write(ctx context.Context, items []item) (int, error) {
	if err := p.send(ctx, &items[0]); err != nil {
		return 0, err
	}
	return 1, nil
}

func (p *post) send(ctx context.Context, i *item) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(i.Text))
	if err != nil {
		return &refused{err}
	}
	for name, value := range map[string]string{
		"Content-Type": "application/xml", "Mirador-Probe": i.Probe,
		"Mirador-Number": strconv.FormatInt(i.Number, 10), "Mirador-Lost": strconv.FormatInt(i.Lost, 10),
	} {
		r.Header.Set(name, value)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 4096) // so that the connection can be used again
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooEarly && code != http.StatusTooManyRequests:
		return &refused{fmt.Errorf("the server answered %s", answer.Status)}
	}
	return fmt.Errorf("the server answered %s", answer.Status)
}

func (p *post) close() { p.client.CloseIdleConnections() }

// refused is the error for a document that the destination will not take later either.
type refused struct{ error }

func (e *refused) Unwrap() error { return e.error }
