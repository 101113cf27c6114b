package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"mirador/mir"
	"mirador/sir"
)

// Preferences for the answer to a document.
const (
	// Extended asks for answers with the gateway's extensions: where a probe runs and what it
	// costs.
	Extended = "return=representation"
	// Explained asks for what would be done, and for nothing to be done.
	Explained = "explain"
)

// Text sends the text of a MIR document to an application; app may be "" if there is only one.
// The reply is the answer's text, whatever it says.
func (c *Client) Text(ctx context.Context, app string, document []byte, prefer string) (*Reply, error) {
	path := "/mir"
	if app != "" {
		path = appPath(app) + "/mir"
	}
	return c.Do(ctx, Request{Method: http.MethodPost, Path: path, Type: "application/xml", Body: document, Prefer: prefer})
}

// Post sends a MIR document to an application and returns the answer, with the gateway's
// extensions. app may be "" if there is only one. The answer is nil if MIR defines none: a request that only
// sets defaults has none. Use Structure in place of a *mir.SIRRequest.
func (c *Client) Post(ctx context.Context, app string, document mir.Document) (mir.Document, error) {
	return c.post(ctx, app, document, Extended)
}

func (c *Client) post(ctx context.Context, app string, document mir.Document, prefer string) (mir.Document, error) {
	text, err := mir.Marshal(document)
	if err != nil {
		return nil, err
	}
	reply, err := c.Text(ctx, app, text, prefer)
	if err != nil {
		return nil, err
	}
	if err := reply.Err(); err != nil || reply.Status == http.StatusNoContent {
		return nil, err
	}
	answer, err := mir.Decode(reply.Body, mir.ReplyLimits())
	if err != nil {
		return nil, fmt.Errorf("cannot read the gateway's reply: %w", err)
	}
	return answer, nil
}

// answerOf returns an answer as the type that the request leads to.
func answerOf[D mir.Document](answer mir.Document, err error) (D, error) {
	d, ok := answer.(D)
	switch {
	case err != nil:
		return d, err
	case answer == nil:
		return d, errors.New("the gateway replied without a document")
	case !ok:
		return d, fmt.Errorf("the gateway replied with a %s document", answer.Root())
	}
	return d, nil
}

// Snapshot returns the processes and threads of an application, with names and call stacks as the
// request says. app may be "" if there is only one, here and below.
func (c *Client) Snapshot(ctx context.Context, app string, r mir.SnapshotRequest) (*mir.Snapshot, error) {
	return answerOf[*mir.Snapshot](c.Post(ctx, app, &r))
}

// Explain returns the monitor's requests to which a document would lead, where their actions
// would run, and what that costs. It changes nothing.
func (c *Client) Explain(ctx context.Context, app string, document mir.Document) (*mir.Explain, error) {
	return answerOf[*mir.Explain](c.post(ctx, app, document, Explained))
}

// Structure returns the structure of an application's programs: the units that a request can name.
func (c *Client) Structure(ctx context.Context, app string) (*sir.Structure, error) {
	return c.structure(ctx, app, nil)
}

// FindUnits returns a part of the structure: all programs, with the units whose ids begin with a
// prefix, at most most of them. Use it for programs with many units. A prefix with a slash also finds
// the regions inside functions.
func (c *Client) FindUnits(ctx context.Context, app, prefix string, most int) (*sir.Structure, error) {
	query := url.Values{"prefix": {prefix}, "most": {strconv.Itoa(most)}}
	if strings.Contains(prefix, "/") {
		query.Set("depth", "100")
	}
	return c.structure(ctx, app, query)
}

func (c *Client) structure(ctx context.Context, app string, query url.Values) (*sir.Structure, error) {
	if app == "" {
		only, err := c.onlyApp(ctx)
		if err != nil {
			return nil, err
		}
		app = only
	}
	path := appPath(app) + "/sir"
	if query != nil {
		path += "?" + query.Encode()
	}
	reply, err := c.Do(ctx, Request{Method: http.MethodGet, Path: path})
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return nil, err
	}
	return sir.Decode(bytes.NewReader(reply.Body))
}

// onlyApp returns the name of the only application. If there are none or several, the error is
// the gateway's for a document without a name.
func (c *Client) onlyApp(ctx context.Context) (string, error) {
	apps, err := c.Apps(ctx)
	if err != nil {
		return "", err
	}
	if len(apps) != 1 {
		_, err = c.Snapshot(ctx, "", mir.SnapshotRequest{})
		if err == nil {
			err = errors.New("the applications have changed; ask again")
		}
		return "", err
	}
	return apps[0].Name, nil
}
