package translate

import (
	"errors"
	"testing"

	"mirador/omis"
)

// TestCreatingForAnEndedProcessFails checks that creating an object for a process that has
// ended fails with the reason. Other answers omit processes that ended.
func TestCreatingForAnEndedProcessFails(t *testing.T) {
	const why = "cannot attach to process 812: it has terminated"
	reply := omis.Reply{{{Status: omis.OK}}, {{Status: omis.UnknownObject, Msg: why}}}
	_, err := Token(reply, 1)
	var known *Error
	if !errors.As(err, &known) || known.Kind != NotFound || known.Msg != why {
		t.Errorf("error %v, want %q", err, why)
	}
}
