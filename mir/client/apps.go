package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"mirador/mir/api"
	"mirador/mir/translate"
)

// The gateway's descriptions of what it has.
type (
	App           = api.App           // an application and its processes
	Process       = api.Process       // a process of an application
	Status        = api.Probe         // a probe: state, placement, cost
	AppRequest    = api.AppRequest    // what Create creates
	LaunchRequest = api.LaunchRequest // a program to start
	Metric        = translate.Metric  // a row of the catalog
	Lock          = api.Lock          // a lock for which threads wait
)

// Apps returns the applications of this user; root and the gateway's user see all.
func (c *Client) Apps(ctx context.Context) (apps []App, err error) {
	return apps, c.JSON(ctx, Request{Method: http.MethodGet, Path: "/apps"}, &apps)
}

// App returns an application.
func (c *Client) App(ctx context.Context, name string) (app App, err error) {
	return app, c.JSON(ctx, Request{Method: http.MethodGet, Path: appPath(name)}, &app)
}

// Create starts a program, attaches to processes, or both. An application of this name receives
// the processes in addition to its own.
func (c *Client) Create(ctx context.Context, r AppRequest) (app App, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return app, err
	}
	return app, c.JSON(ctx, Request{Method: http.MethodPost, Path: "/apps", Type: "application/json", Body: body}, &app)
}

// Attach observes running processes as an application, with the processes that they have forked.
// Without a name the application has the name of the first program.
func (c *Client) Attach(ctx context.Context, name string, pids ...int) (App, error) {
	return c.Create(ctx, AppRequest{Name: name, Attach: pids})
}

// Launch starts a program as the gateway's user.
func (c *Client) Launch(ctx context.Context, name string, program LaunchRequest) (App, error) {
	return c.Create(ctx, AppRequest{Name: name, Launch: &program})
}

// Continue continues the programs of an application that were started paused.
func (c *Client) Continue(ctx context.Context, name string) (app App, err error) {
	return app, c.JSON(ctx, Request{Method: http.MethodPost, Path: appPath(name) + "/continue", Type: "application/json"}, &app)
}

// Release removes an application's probes and forgets the application. Its processes continue;
// kill ends those that the gateway has started.
func (c *Client) Release(ctx context.Context, app string, kill bool) error {
	return c.JSON(ctx, Request{Method: http.MethodDelete, Path: fmt.Sprintf("%s?kill=%t", appPath(app), kill)}, nil)
}

// Locks returns the locks for which threads of an application wait at present.
func (c *Client) Locks(ctx context.Context, app string) (locks []Lock, err error) {
	return locks, c.JSON(ctx, Request{Method: http.MethodGet, Path: appPath(app) + "/locks"}, &locks)
}

// Catalog returns the metrics that a request may name.
func (c *Client) Catalog(ctx context.Context) (metrics []Metric, err error) {
	return metrics, c.JSON(ctx, Request{Method: http.MethodGet, Path: "/catalog"}, &metrics)
}

// FindMetric returns the row of the catalog for a metric of a request, which may name its name
// space and a system call: linux:SYSCALL_COUNT:read.
func FindMetric(catalog []Metric, name string) (m Metric, ok bool) {
	inSpace := func(space string) func(Metric) bool { return func(m Metric) bool { return m.Space == space } }
	space, rest, found := strings.Cut(name, ":")
	if !found || !slices.ContainsFunc(catalog, inSpace(space)) {
		space, rest = "", name
	}
	base, _, _ := strings.Cut(rest, ":")
	i := slices.IndexFunc(catalog, func(m Metric) bool {
		return (space == "" || m.Space == space) && (m.Name == rest || m.Name == base)
	})
	if i < 0 {
		return m, false
	}
	return catalog[i], true
}

// Probes describes the probes of all applications of this user.
func (c *Client) Probes(ctx context.Context) (probes []Status, err error) {
	return probes, c.JSON(ctx, Request{Method: http.MethodGet, Path: "/probes"}, &probes)
}

func appPath(name string) string { return "/apps/" + url.PathEscape(name) }

// JSON sends a request to a route that answers with JSON, and decodes the answer into result,
// which is nil if there is none.
func (c *Client) JSON(ctx context.Context, r Request, result any) error {
	r.Accept = "application/json"
	reply, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	if err := reply.Err(); err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(reply.Body, result); err != nil {
		return fmt.Errorf("cannot read the gateway's reply: %w", err)
	}
	return nil
}
