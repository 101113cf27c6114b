package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

const mostRedirections = 5

// getHTTP gets a file by HTTP. Servers may redirect to what the rules allow.
func (f *Folder) getHTTP(ctx context.Context, u *url.URL, to io.Writer) error {
	transport := &http.Transport{DialContext: f.dialer(u).DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, before []*http.Request) error {
		if len(before) > mostRedirections {
			return fmt.Errorf("the server redirects more than %d times", mostRedirections)
		}
		if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
			return fmt.Errorf("the server redirects to %s", r.URL.Redacted())
		}
		if err := f.rules.URL(r.URL); err != nil {
			return fmt.Errorf("the server redirects to %s: %w", r.URL.Redacted(), err)
		}
		transport.DialContext = f.dialer(r.URL).DialContext
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	return f.copy(to, answer.Body)
}
