package translate

import (
	"fmt"
	"strings"

	"mirador/mir"
	"mirador/omis"
)

// ErrorKind tells what a caller can do about an Error; http derives the status code from it.
type ErrorKind uint8

const (
	Invalid      ErrorKind = iota + 1 // the request contradicts itself or MIR
	NotFound                          // it names something that does not exist
	Conflict                          // it does not fit the current state
	Forbidden                         // the monitor has no permission
	CannotBeDone                      // valid, but not possible here
	Unavailable                       // the monitor does not answer
)

// Error explains to a person why a request failed.
type Error struct {
	Kind ErrorKind
	Pos  mir.Position // in the request; zero if it concerns no single place
	Msg  string
}

func (e *Error) Error() string {
	if e.Pos == (mir.Position{}) {
		return e.Msg
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Pos.Line, e.Pos.Column, e.Msg)
}

// Errorf makes an Error.
func Errorf(k ErrorKind, pos mir.Position, format string, args ...any) *Error {
	return &Error{Kind: k, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// Errors lists all errors of one request, in the order of the document.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// err returns es as an error, nil if it is empty.
func (es Errors) err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// FromStatus converts the status of a service to an Error.
func FromStatus(s omis.Status, msg string) *Error {
	kind := CannotBeDone
	switch s &^ omis.Fatal {
	case omis.NoPermission:
		kind = Forbidden
	case omis.UnknownObject:
		kind = NotFound
	}
	return &Error{Kind: kind, Msg: msg}
}

// unexpected reports that an answer does not match the service's definition.
func unexpected(service string, r omis.ObjectResult) *Error {
	return Errorf(Unavailable, mir.Position{}, "the monitor answered %s with %d values that do not fit its definition", service, len(r.Values))
}
