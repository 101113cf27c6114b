package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"mirador/http/identity"
)

// mayTouch tells whether a caller may observe an application now. What its
// processes were when they were taken in is not enough: one that executed a
// set-user-ID program since is not its user's any more.
func (s *Server) mayTouch(c *Caller, app *App) bool {
	if c.All {
		return true
	}
	foreign := func(p Process) bool {
		uid, err := s.cfg.ProcessOwner(p.PID)
		return !p.Gone && err == nil && uid != c.UID
	}
	return c.MayTouch(app.Owner) && !slices.ContainsFunc(app.Processes, foreign)
}

// ownerOf is the uid of a process' owner, or a fault that names the process.
func (s *Server) ownerOf(pid int) (int, error) {
	uid, err := s.cfg.ProcessOwner(pid)
	if errors.Is(err, identity.ErrNoProcess) {
		err = NewFault(http.StatusNotFound, fmt.Sprintf("there is no process %d", pid))
	}
	return uid, err
}
