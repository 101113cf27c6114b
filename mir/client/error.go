package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"mirador/mir"
)

// Error is a request that the gateway has refused.
type Error struct {
	Status int // of HTTP
	// Faults are the reasons, at least one, in the order of the request. Only the answer to a
	// document has positions, which are those in the text of the request.
	Faults []mir.Fault
}

// These are the kinds of errors that a program may want to handle: errors.Is(err, ErrNotFound).
var (
	ErrInvalid     = errors.New("the request is not valid")       // 400, 413, 415
	ErrForbidden   = errors.New("this user may not do that")      // 401, 403
	ErrNotFound    = errors.New("it does not exist")              // 404
	ErrConflict    = errors.New("it is in conflict with others")  // 409
	ErrImpossible  = errors.New("it cannot be done")              // 422
	ErrUnavailable = errors.New("the gateway cannot do this now") // 429, 503
	ErrGateway     = errors.New("the gateway has made a mistake") // 500
)

var statusKinds = map[int]error{
	http.StatusBadRequest: ErrInvalid, http.StatusRequestEntityTooLarge: ErrInvalid, http.StatusUnsupportedMediaType: ErrInvalid,
	http.StatusUnauthorized: ErrForbidden, http.StatusForbidden: ErrForbidden,
	http.StatusNotFound: ErrNotFound, http.StatusConflict: ErrConflict, http.StatusUnprocessableEntity: ErrImpossible,
	http.StatusTooManyRequests: ErrUnavailable, http.StatusServiceUnavailable: ErrUnavailable,
	http.StatusInternalServerError: ErrGateway,
}

// Error returns the reasons, one a line. It omits the positions, since a user of this package has
// not seen the text of the request.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Msg
	}
	return strings.Join(lines, "\n")
}

// Is reports whether the error is of a kind.
func (e *Error) Is(target error) bool { return target != nil && statusKinds[e.Status] == target }

// Err returns the *Error of a reply with which the gateway refuses the request, nil for others.
func (r *Reply) Err() error {
	if !r.Failed() {
		return nil
	}
	e := &Error{Status: r.Status}
	for _, message := range r.messages() {
		e.Faults = append(e.Faults, faultOf(message))
	}
	return e
}

// messages returns the texts of an errors document, or of a problem document. Another body is
// from something between the gateway and this client, and is a single text.
func (r *Reply) messages() []string {
	if document, err := mir.Decode(r.Body, mir.ReplyLimits()); err == nil {
		if failed, ok := document.(*mir.Errors); ok && len(failed.Messages) > 0 {
			return failed.Messages
		}
	}
	var p struct {
		Detail string   `json:"detail"`
		Errors []string `json:"errors"`
	}
	if json.Unmarshal(r.Body, &p) == nil {
		if len(p.Errors) > 0 {
			return p.Errors
		}
		if p.Detail != "" {
			return []string{p.Detail}
		}
	}
	return []string{fmt.Sprintf("%s: %s", http.StatusText(r.Status), strings.TrimSpace(string(r.Body)))}
}

// position matches the position with which a message begins.
var position = regexp.MustCompile(`^line (\d+), column (\d+): `)

func faultOf(message string) (f mir.Fault) {
	f.Msg = message
	if at := position.FindStringSubmatch(message); at != nil {
		f.Pos.Line, _ = strconv.Atoi(at[1]) // out of range: unknown
		f.Pos.Column, _ = strconv.Atoi(at[2])
		f.Msg = message[len(at[0]):]
	}
	return f
}
