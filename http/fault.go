package gateway

import (
	"errors"
	"net/http"
	"strings"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// Fault is an error with its HTTP status, and one or more messages for users.
type Fault struct {
	Status   int
	Messages []string
}

func (f *Fault) Error() string { return strings.Join(f.Messages, "; ") }

// NewFault returns a Fault with one message.
func NewFault(status int, message string) *Fault {
	return &Fault{Status: status, Messages: []string{message}}
}

// faultOf returns the Fault for any error. The status of an unknown error is 500.
func faultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return NewFault(http.StatusRequestEntityTooLarge, tooLargeMessage(tooLarge.Limit))
	}
	var d *mir.Error
	if errors.As(err, &d) {
		return &Fault{Status: documentStatus(d.Kind), Messages: d.Messages()}
	}
	if f := untranslatable(err); f != nil {
		return f
	}
	var o *omis.Error
	if errors.As(err, &o) {
		return NewFault(statusOf(o.Status), err.Error())
	}
	return NewFault(http.StatusInternalServerError, err.Error())
}

// documentStatus returns the status for the kind of check that refused a document.
func documentStatus(k mir.Kind) int {
	if k == mir.TooLarge {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// untranslatable returns the Fault for the errors with which mir/translate or package probes
// refuses a request: each error is a message, and the first determines the status. It returns
// nil for other errors.
func untranslatable(err error) *Fault {
	var all translate.Errors
	if !errors.As(err, &all) {
		var one *translate.Error
		if !errors.As(err, &one) {
			return nil
		}
		all = translate.Errors{one}
	}
	f := &Fault{Status: kindStatus(all[0].Kind)}
	for _, e := range all {
		f.Messages = append(f.Messages, e.Error())
	}
	return f
}

func kindStatus(k translate.ErrorKind) int {
	switch k {
	case translate.Invalid:
		return http.StatusBadRequest
	case translate.NotFound:
		return http.StatusNotFound
	case translate.Conflict:
		return http.StatusConflict
	case translate.Forbidden:
		return http.StatusForbidden
	case translate.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusUnprocessableEntity
}

// statusOf returns the HTTP status for the status of an OMIS service (OMIS 7.3.1).
func statusOf(s omis.Status) int {
	switch s &^ omis.Fatal {
	case omis.UnknownObject:
		return http.StatusNotFound
	case omis.NoPermission:
		return http.StatusForbidden
	case omis.SyntaxError:
		return http.StatusBadRequest
	case omis.NoMemory:
		return http.StatusServiceUnavailable
	case omis.InternalError:
		return http.StatusInternalServerError
	}
	return http.StatusUnprocessableEntity
}
