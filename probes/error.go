package probes

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
)

// Error is the reason why a request failed. Its Pos is the position in the document that caused
// the error.
type Error = translate.Error

// Kind tells a caller what to do about an Error.
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

// Errors has all errors of a request.
type Errors = translate.Errors

// AsErrors returns the single errors of an answer. An error of another type, such as that of a
// context, gets the kind Unavailable.
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

// placed adds the position of the request to errors without a position, and sorts the errors by
// position. It returns an error of another type unchanged.
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

// collected returns es as an error, nil if it is empty.
func collected(es Errors) error {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return es
}
