package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"mirador/omis/node"
	"mirador/probes"
)

// appName matches names that need no quoting in a path or a table.
var appName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// appHandlers answer requests that start, list and release applications.
type appHandlers struct {
	*access
	bodyReader
	backend Backend
	most    int // applications of a user
}

func (h *appHandlers) listApps(x *exchange) error {
	return sendJSON(x, http.StatusOK, h.touchable(x.caller))
}

func (h *appHandlers) getApp(x *exchange) error {
	app, err := h.findApp(x)
	if err != nil {
		return err
	}
	return sendJSON(x, http.StatusOK, app)
}

func (h *appHandlers) createApp(x *exchange) error {
	req, err := h.readAppRequest(x)
	if err != nil {
		return err
	}
	if err := h.mayExtend(x.caller, req.Name, h.most); err != nil {
		return err
	}
	var app App
	if req.Launch == nil && len(req.Attach) == 0 {
		if app, err = h.backend.Create(req.Name, x.caller.UID); err != nil {
			return err
		}
	}
	if req.Launch != nil {
		if app, err = h.launch(x, req); err != nil {
			return err
		}
	}
	if len(req.Attach) > 0 {
		if app, err = h.attach(x, req); err != nil {
			return err
		}
	}
	if req.Follow {
		if err := h.backend.Follow(x.r.Context(), app.Name); err != nil {
			return err
		}
	}
	x.Header().Set("Location", "/apps/"+app.Name)
	return sendJSON(x, http.StatusCreated, app)
}

func (h *appHandlers) readAppRequest(x *exchange) (*AppRequest, error) {
	in := takeBuffer()
	defer giveBuffer(in)
	body, err := h.readBody(x, in)
	if err != nil {
		return nil, err
	}
	req, err := decodeAppRequest(body)
	if err != nil {
		return nil, NewFault(http.StatusBadRequest, "cannot read the request: "+err.Error())
	}
	if named := x.param("app"); named != "" {
		if req.Name != "" && req.Name != named {
			return nil, NewFault(http.StatusBadRequest, fmt.Sprintf("the path says application %s, the request %s", named, req.Name))
		}
		req.Name = named
	}
	if req.Name == "" {
		req.Name = h.wovenFor(x.caller, req)
	}
	if req.Name == "" && req.Launch != nil {
		req.Name = filepath.Base(req.Launch.Path)
	}
	if req.Name != "" && !appName.MatchString(req.Name) {
		return nil, NewFault(http.StatusBadRequest, fmt.Sprintf(
			"%q cannot be the name of an application: use up to 64 letters, digits, '.', '_' and '-'; give one with --app", req.Name))
	}
	return req, nil
}

// wovenFor returns the application whose woven sources the program of a request was built from, if the
// program belongs to its owner. "" means that there is none.
func (h *appHandlers) wovenFor(c *Caller, req *AppRequest) string {
	path, pid := "", 0
	switch {
	case req.Launch != nil && c.All:
		path = req.Launch.Path
	case req.Launch == nil && len(req.Attach) > 0:
		pid = req.Attach[0]
		if uid, err := h.ownerOf(pid); err != nil || !c.MayTouch(uid) {
			return "" // attach says why
		}
	default:
		return ""
	}
	names := h.backend.WovenFor(path, pid)
	for _, app := range h.apps() {
		if !slices.Contains(names, app.Name) || !h.mayTouch(c, &app) {
			continue
		}
		if uid, err := h.ownerOf(pid); pid == 0 || err == nil && uid == app.Owner {
			return app.Name
		}
	}
	return ""
}

func decodeAppRequest(body []byte) (*AppRequest, error) {
	var req AppRequest
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	if req.Launch == nil && len(req.Attach) == 0 && (req.Name == "" || req.Follow) {
		return nil, errors.New("it names neither a program to launch nor processes to attach to, nor an application to make without processes")
	}
	if req.Alone && req.Follow {
		return nil, errors.New("\"alone\" and \"follow\" contradict each other")
	}
	if req.Launch != nil && !filepath.IsAbs(req.Launch.Path) {
		return nil, fmt.Errorf("the program's path must be absolute, not %q", req.Launch.Path)
	}
	_, err := pauseOf(&req)
	return &req, err
}

// pauseOf returns how the program is to be paused, nil if it is not.
func pauseOf(r *AppRequest) (*probes.Pause, error) {
	switch {
	case !r.Paused && r.Lease != "":
		return nil, errors.New("\"lease\" continues a program that was started with \"paused\": true")
	case !r.Paused:
		return nil, nil
	case r.Launch == nil:
		return nil, errors.New("only a program that is launched can be paused: a running process has begun already")
	case r.Lease == "":
		return &probes.Pause{}, nil
	}
	lease, err := time.ParseDuration(r.Lease)
	if err != nil || lease <= 0 {
		return nil, fmt.Errorf("the lease %q is no duration, such as 90s or 10m", r.Lease)
	}
	return &probes.Pause{Lease: lease}, nil
}

// launch starts a program. Only root and the gateway's user may do so, because the program
// runs as the gateway's user.
func (h *appHandlers) launch(x *exchange, req *AppRequest) (App, error) {
	if err := admit(x.caller, Debug); err != nil {
		return App{}, err
	}
	if !x.caller.All {
		return App{}, NewFault(http.StatusForbidden,
			"a program started by this gateway would run as the gateway's user, not as you: start it yourself and attach to it with \"mirador attach PID\", or run your own gateway")
	}
	pause, err := pauseOf(req)
	if err != nil {
		return App{}, err
	}
	l := req.Launch
	return h.backend.Launch(x.r.Context(), req.Name, node.Launch{
		Path: l.Path, Args: l.Args, Env: l.Env, Dir: l.Dir, IO: []string{l.Stdin, l.Stdout, l.Stderr},
	}, pause)
}

// listLocks lists the locks for which threads of an application wait.
func (h *appHandlers) listLocks(x *exchange) error {
	app, err := h.findApp(x)
	if err != nil {
		return err
	}
	locks, err := h.backend.Locks(x.r.Context(), app.Name)
	if err != nil {
		return err
	}
	return sendTable(x, "locks", "lock", locks)
}

// continueApp continues the programs of an application that were started paused.
func (h *appHandlers) continueApp(x *exchange) error {
	app, err := h.findApp(x)
	if err != nil {
		return err
	}
	if app, err = h.backend.Continue(x.r.Context(), app.Name); err != nil {
		return err
	}
	return sendJSON(x, http.StatusOK, app)
}

func (h *appHandlers) attach(x *exchange, req *AppRequest) (App, error) {
	for _, pid := range req.Attach {
		uid, err := h.ownerOf(pid)
		if err != nil {
			return App{}, err
		}
		if !x.caller.MayTouch(uid) {
			return App{}, NewFault(http.StatusForbidden, fmt.Sprintf(
				"process %d belongs to uid %d, and you are %s: ask that user or root to attach to it", pid, uid, x.caller.Name))
		}
	}
	app, err := h.backend.Attach(x.r.Context(), req.Name, req.Attach)
	if err != nil || req.Alone {
		return app, err
	}
	return h.attachForked(x, app, req)
}

// attachForked attaches the processes that the attached ones have forked, such as the workers
// of a server, and makes the application follow later forks. It excludes processes that the
// caller may not touch, and processes that end meanwhile.
func (h *appHandlers) attachForked(x *exchange, app App, req *AppRequest) (App, error) {
	pids := req.Attach
	for _, pid := range pids {
		for _, child := range h.backend.Forked(pid) {
			if slices.Contains(pids, child) {
				continue
			}
			if uid, err := h.ownerOf(child); err != nil || !x.caller.MayTouch(uid) {
				continue
			}
			wider, err := h.backend.Attach(x.r.Context(), app.Name, []int{child})
			if _, gone := h.ownerOf(child); err != nil && gone == nil {
				return app, fmt.Errorf("cannot attach to process %d, which process %d has forked (\"alone\" leaves it out): %w", child, pid, err)
			}
			if err == nil {
				app, req.Follow = wider, true
			}
		}
	}
	return app, nil
}

func (h *appHandlers) releaseApp(x *exchange) error {
	app, err := h.findApp(x)
	if err != nil {
		return err
	}
	return h.release(x, app)
}

func (h *appHandlers) releaseApps(x *exchange) error {
	return h.release(x, h.touchable(x.caller)...)
}

func (h *appHandlers) release(x *exchange, apps ...App) error {
	kill := x.r.URL.Query().Get("kill") == "true"
	var failed []error
	for _, app := range apps {
		failed = append(failed, h.backend.Release(x.r.Context(), app.Name, kill))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}
