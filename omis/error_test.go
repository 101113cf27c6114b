package omis

import (
	"errors"
	"io/fs"
	"testing"
)

func TestErrorKeepsItsCause(t *testing.T) {
	err := Errorf(OSError, "cannot read about process %d: %w", 7, fs.ErrPermission)
	if err.Msg != "cannot read about process 7: permission denied" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%q with the cause %v", err.Msg, err.Cause)
	}
}
