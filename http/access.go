package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"mirador/http/identity"
)

// access decides who a caller is, and which applications the caller may touch. It does not
// change, and may be used from any goroutine.
type access struct {
	token        Token
	hosts        []string
	apps         func() []App
	processOwner func(pid int) (int, error)
}

// identify returns the caller of a request: the peer of the Unix socket, or the holder of a
// verified client certificate or of the token.
func (a *access) identify(r *http.Request) *Caller {
	if c, ok := r.Context().Value(callerKey{}).(*Caller); ok {
		return c
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return certified(r.TLS.PeerCertificates[0])
	}
	// The comparison of the scheme ignores case (RFC 9110, 11.1).
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && a.token.matches(strings.TrimSpace(token)) {
		return tokenHolder
	}
	return stranger
}

// checkHost refuses requests to a host name that is not the gateway's. A page in a browser
// could resolve a name of its own to 127.0.0.1 and read the gateway's answers (DNS
// rebinding). Addresses cannot be abused in this way. TLS has checked the name already, and
// a browser cannot connect to a Unix socket.
func (a *access) checkHost(r *http.Request) error {
	if !overTCP(r.Context()) || r.TLS != nil || a.servesHost(r.Host) {
		return nil
	}
	return NewFault(http.StatusMisdirectedRequest, fmt.Sprintf(
		"this gateway is not called %q: use its address or localhost, or start it with \"mirador serve --host NAME\"", r.Host))
}

func (a *access) servesHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(a.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// admit returns an error if the caller's role is less than a request needs.
func admit(c *Caller, need Role) error {
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

// mayTouch reports whether a caller may observe an application now. It asks for the owners
// of the processes again: a process that has executed a set-user-ID program since it was
// attached no longer belongs to its user.
func (a *access) mayTouch(c *Caller, app *App) bool {
	if c.All {
		return true
	}
	foreign := func(p Process) bool {
		uid, err := a.processOwner(p.PID)
		return !p.Gone && err == nil && uid != c.UID
	}
	return c.MayTouch(app.Owner) && !slices.ContainsFunc(app.Processes, foreign)
}

// ownerOf returns the uid of a process's owner, or a fault that names the process.
func (a *access) ownerOf(pid int) (int, error) {
	uid, err := a.processOwner(pid)
	if errors.Is(err, identity.ErrNoProcess) {
		err = NewFault(http.StatusNotFound, fmt.Sprintf("there is no process %d", pid))
	}
	return uid, err
}

// touchable lists the applications that the caller may touch.
func (a *access) touchable(c *Caller) []App {
	apps := append([]App{}, a.apps()...) // an empty list, unlike nil, is [] in JSON
	return slices.DeleteFunc(apps, func(app App) bool { return !a.mayTouch(c, &app) })
}

// namesOfTouchable returns the names of the applications that the caller may touch.
func (a *access) namesOfTouchable(c *Caller) map[string]bool {
	names := map[string]bool{}
	for _, app := range a.touchable(c) {
		names[app.Name] = true
	}
	return names
}

// mayExtend refuses to add processes to another user's application, or to create an
// application for a user that has the greatest permitted number. Requests that arrive at the
// same time may exceed this number.
func (a *access) mayExtend(c *Caller, name string, most int) error {
	own := 0
	for _, app := range a.apps() {
		switch {
		case app.Name == name && !a.mayTouch(c, &app):
			return NewFault(http.StatusForbidden, fmt.Sprintf(
				"application %s belongs to uid %d, and you are %s: choose another name with --app", name, app.Owner, c.Name))
		case app.Name == name:
			return nil
		case app.Owner == c.UID:
			own++
		}
	}
	if !c.All && own >= most {
		return NewFault(http.StatusTooManyRequests, fmt.Sprintf(
			"%s has %d applications, and may have no more: release some, or add the processes to one of them with --app", c.Name, own))
	}
	return nil
}

// findApp returns the application that the path of a request names. It does not hide that an
// application exists that the caller may not touch: names are no secret, and the kernel
// lists all processes.
func (a *access) findApp(x *exchange) (App, error) {
	name := x.param("app")
	apps := a.apps()
	for _, app := range apps {
		if app.Name != name {
			continue
		}
		if !a.mayTouch(x.caller, &app) {
			return App{}, forbidden(x.caller, &app)
		}
		return app, nil
	}
	return App{}, NewFault(http.StatusNotFound, fmt.Sprintf("there is no application %q; %s", name, nameApps(apps)+ofPID(apps, name)))
}

// ofPID says, if a name is the number of a process, how to name the application of the process.
func ofPID(apps []App, name string) string {
	pid, err := strconv.Atoi(name)
	if err != nil {
		return ""
	}
	for _, app := range apps {
		if slices.ContainsFunc(app.Processes, func(p Process) bool { return p.PID == pid && !p.Gone }) {
			return fmt.Sprintf("; process %d is of the application %s", pid, app.Name)
		}
	}
	return fmt.Sprintf("; \"mirador attach %d\" observes the process, and prints the name of its application", pid)
}

func forbidden(c *Caller, app *App) error {
	if c.MayTouch(app.Owner) {
		return NewFault(http.StatusForbidden, fmt.Sprintf(
			"a process of application %s has taken another identity than yours, %s: ask root", app.Name, c.Name))
	}
	return NewFault(http.StatusForbidden, fmt.Sprintf(
		"the processes of application %s belong to uid %d, and you are %s: ask that user or root", app.Name, app.Owner, c.Name))
}

func nameApps(apps []App) string {
	if len(apps) == 0 {
		return "there is none at all: start one with \"mirador run -- PROGRAM ARGUMENT…\""
	}
	names := make([]string, len(apps))
	for i, app := range apps {
		names[i] = app.Name
	}
	return "there are: " + strings.Join(names, ", ")
}
