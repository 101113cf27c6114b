package translate

import (
	"errors"
	"testing"

	"mirador/omis"
)

// What ended while a request ran is left out of an answer, but nothing is created
// for what had ended before, and the reason must be told.
func TestNothingIsCreatedForWhatHasEnded(t *testing.T) {
	const why = "cannot attach to process 812: it has terminated"
	reply := omis.Reply{{{Status: omis.OK}}, {{Status: omis.UnknownObject, Msg: why}}}
	_, err := Token(reply, 1)
	var known *Error
	if !errors.As(err, &known) || known.Kind != NotFound || known.Msg != why {
		t.Errorf("error %v, want %q", err, why)
	}
}
