package probes

import (
	"cmp"
	"context"
	"errors"
	"slices"

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

// placed gives errors that have no place that of the request, and puts all of them in the
// order of the document. What is no error of a request is returned as it is.
func placed(err error, request mir.Position) error {
	var one *Error
	if !errors.As(err, &one) || errors.Is(err, context.Canceled) {
		return err
	}
	var all Errors
	for _, e := range AsErrors(err) {
		if e.Pos == (mir.Position{}) {
			e = translate.Errorf(e.Kind, request, "%s", e.Msg)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return collected(all)
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
