package probes

import (
	"context"
	"errors"

	"mirador/mir"
	"mirador/mir/translate"
)

// Error is why a request was not done. Its Pos is the place in the document
// that is to blame.
type Error = translate.Error

// Kind tells what a caller can do about an Error.
type Kind = translate.ErrorKind

// The kinds of errors.
const (
	Invalid      = translate.Invalid
	NotFound     = translate.NotFound
	Conflict     = translate.Conflict
	Forbidden    = translate.Forbidden
	CannotBeDone = translate.CannotBeDone
	Unavailable  = translate.Unavailable
)

// Errors is everything that is wrong with one request.
type Errors = translate.Errors

// AsErrors lists the errors of an answer, one by one. What is none of ours, such
// as a context that ended, becomes one of kind Unavailable.
func AsErrors(err error) Errors {
	var one *Error
	var several interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &one) && error(one) == err:
		return Errors{one}
	case errors.As(err, &several):
		var all Errors
		for _, e := range several.Unwrap() {
			all = append(all, AsErrors(e)...)
		}
		return all
	case one != nil:
		return Errors{one}
	case errors.Is(err, context.DeadlineExceeded):
		return Errors{failf(Unavailable, "the monitor did not answer in time")}
	}
	return Errors{failf(Unavailable, "%v", err)}
}

func failf(k Kind, format string, args ...any) *Error {
	return translate.Errorf(k, mir.Position{}, format, args...)
}

// collected is es as an error, nil where there is none.
func collected(es Errors) error {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return es
}
