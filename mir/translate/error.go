package translate

import (
	"fmt"
	"strings"

	"mirador/mir"
	"mirador/omis"
)

// ErrorKind tells what a caller can do about an Error; http makes a status of it.
type ErrorKind uint8

const (
	Invalid      ErrorKind = iota + 1 // the request contradicts itself or MIR
	NotFound                          // it names something that is not there
	Conflict                          // it does not fit the present state
	Forbidden                         // the monitor may not do it
	CannotBeDone                      // valid, but not possible here
	Unavailable                       // the monitor does not answer
)

// Error is why a request was not done, worded for the person who reads it.
type Error struct {
	Kind ErrorKind
	Pos  mir.Position // in the request; zero where no single place is to blame
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

// Errors is everything that is wrong with one request, in the order of the
// document.
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

// err is es as an error, nil where there is none.
func (es Errors) err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// FromStatus makes an Error of what a service answered.
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

// unexpected is an answer that does not follow the service's definition.
func unexpected(service string, r omis.ObjectResult) *Error {
	return Errorf(Unavailable, mir.Position{}, "the monitor answered %s with %d values that do not fit its definition", service, len(r.Values))
}
